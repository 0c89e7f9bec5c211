//! `read_parquet(..)`, `read_csv(..)` and `read_arrow(..)` in FROM become names of tables.

use std::ops::ControlFlow;

use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, Statement,
    TableAlias, TableFactor, Value, VisitMut, VisitorMut,
};

use crate::files::spec::{Csv, Format, Spec};

/// Puts names in the place of calls.
///
/// # Errors
/// Arguments that mean nothing.
pub(crate) fn as_names(statement: &mut Statement) -> Result<()> {
    match statement.visit(&mut Calls) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Calls;

impl VisitorMut for Calls {
    type Break = Box<DataFusionError>;

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Self::Break> {
        match replace(table) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

fn replace(table: &mut TableFactor) -> Result<()> {
    let TableFactor::Table { name, alias, args, .. } = table else { return Ok(()) };
    let [ObjectNamePart::Identifier(function)] = &*name.0 else { return Ok(()) };
    let function = function.value.to_ascii_lowercase();
    let (Some(format), Some(arguments)) = (Format::of_function(&function), &*args) else { return Ok(()) };
    let mut spec = Spec { format, paths: Vec::new(), csv: Csv::default() };
    for argument in &arguments.args {
        add(&mut spec, argument)?;
    }
    if spec.paths.is_empty() {
        return plan_err!("{function} without a path; write {function}('..')");
    }
    *name = ObjectName(vec![ObjectNamePart::Identifier(Ident::with_quote('"', spec.name()?))]);
    *args = None;
    alias.get_or_insert_with(|| TableAlias {
        explicit: true,
        name: Ident::new(function),
        columns: Vec::new(),
        at: None,
    });
    Ok(())
}

/// Adds what an argument says.
fn add(spec: &mut Spec, argument: &FunctionArg) -> Result<()> {
    match argument {
        // As DuckDB has it.
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq,
            right,
        })) => match &**left {
            Expr::Identifier(name) => set(spec, name, right),
            _ => plan_err!("{argument} is no option"),
        },
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => set(spec, name, value),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Array(list))) => {
            list.elem.iter().try_for_each(|path| add_path(spec, path))
        }
        FunctionArg::Unnamed(FunctionArgExpr::Expr(path)) => add_path(spec, path),
        _ => plan_err!("{argument} is no path and no option"),
    }
}

fn text(value: &Expr) -> Option<&str> {
    let Expr::Value(value) = value else { return None };
    match &value.value {
        Value::SingleQuotedString(text) => Some(text),
        _ => None,
    }
}

fn add_path(spec: &mut Spec, path: &Expr) -> Result<()> {
    match text(path) {
        Some(path) => spec.paths.push(path.to_owned()),
        None => return plan_err!("{path} is no path; write it in quotes"),
    }
    Ok(())
}

fn set(spec: &mut Spec, name: &Ident, value: &Expr) -> Result<()> {
    let name = name.value.to_ascii_lowercase();
    if spec.format != Format::Csv {
        return plan_err!("{} has no option {name}", spec.format.function());
    }
    let byte = || match text(value).map(str::as_bytes) {
        Some(&[byte]) if byte.is_ascii() && byte != 0 => Ok(byte),
        Some(b"\\t") => Ok(b'\t'),
        _ => plan_err!("{name} is {value}; write one character"),
    };
    let csv = &mut spec.csv;
    match &*name {
        "delim" | "sep" | "delimiter" => csv.delimiter = byte()?,
        "quote" => csv.quote = byte()?,
        "escape" => csv.escape = Some(byte()?),
        "header" => match value.to_string().to_ascii_lowercase().as_str() {
            "true" | "1" => csv.has_header = true,
            "false" | "0" => csv.has_header = false,
            _ => return plan_err!("header is {value}; write true or false"),
        },
        _ => return plan_err!("read_csv has no option {name}; there are delim, header, quote and escape"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn changed(sql: &str) -> std::result::Result<String, String> {
        let mut statement = Parser::parse_sql(&GenericDialect {}, sql).unwrap().remove(0);
        as_names(&mut statement).map_err(|error| error.to_string())?;
        Ok(statement.to_string().replace('\u{1f}', "|"))
    }

    #[test]
    fn calls_become_names_and_keep_their_aliases() {
        for (sql, wanted) in [
            (
                "SELECT a FROM read_parquet('x.parquet')",
                r#"SELECT a FROM "|read_parquet|44 1 34 0|x.parquet" AS read_parquet"#,
            ),
            (
                "SELECT a FROM t JOIN READ_CSV(['a', 'b/*'], delim = ';', header = false, quote => '''') AS x ON true",
                r#"SELECT a FROM t JOIN "|read_csv|59 0 39 0|a|b/*" AS x ON true"#,
            ),
            (
                "SELECT (SELECT max(b) FROM read_csv_auto('a', sep = '\\t', escape = '\\') y)",
                r#"SELECT (SELECT max(b) FROM "|read_csv|9 1 34 92|a" y)"#,
            ),
            ("SELECT * FROM read_csv", "SELECT * FROM read_csv"),
            ("SELECT * FROM range(3)", "SELECT * FROM range(3)"),
        ] {
            assert_eq!(changed(sql), Ok(wanted.to_owned()), "{sql}");
        }
    }

    #[test]
    fn arguments_that_mean_nothing_are_told() {
        for (arguments, told) in [
            ("", "without a path"),
            ("1", "is no path"),
            ("'a', delim = ';;'", "write one character"),
            ("'a', header = 2", "write true or false"),
            ("'a', skip = 1", "no option skip"),
            ("*", "no path"),
        ] {
            let error = changed(&format!("SELECT * FROM read_csv({arguments})")).expect_err(arguments);
            assert!(error.contains(told), "{arguments}: {error}");
        }
        assert!(
            changed("SELECT * FROM read_arrow('a', header = true)").unwrap_err().contains("no option header")
        );
    }
}

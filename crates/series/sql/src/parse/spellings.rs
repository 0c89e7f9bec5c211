//! Other systems' spellings of what there is here by another name.
//!
//! ```text
//!   a // b            intdiv(a, b)      DuckDB
//!   .. SETTINGS ..    ..                ClickHouse, where it says what is so anyway
//! ```

use std::ops::ControlFlow;

use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments,
    Ident, ObjectName, ObjectNamePart, Query, Statement, VisitMut, VisitorMut,
};

use crate::functions::INT_DIV;

/// Puts our words in the place of theirs.
///
/// # Errors
/// Settings that would have to change something.
pub(super) fn translate(statement: &mut Statement) -> Result<()> {
    match statement.visit(&mut Spellings) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Spellings;

impl VisitorMut for Spellings {
    type Break = Box<DataFusionError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        match settings(query) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::BinaryOp { left, op: BinaryOperator::DuckIntegerDivide, right } = expression {
            *expression = int_div((**left).clone(), (**right).clone());
        }
        ControlFlow::Continue(())
    }
}

/// Takes away settings of ClickHouse that change no answer here.
fn settings(query: &mut Query) -> Result<()> {
    for setting in query.settings.take().into_iter().flatten() {
        let value = setting.value.to_string();
        match (setting.key.value.as_str(), value.as_str()) {
            // How many threads there are is said where the engine is made.
            ("max_threads", _) => {}
            // What a LEFT JOIN does not find is null, as in SQL.
            ("join_use_nulls", "1") => {}
            (name, value) => return plan_err!("SETTINGS {name} = {value} is not known here"),
        }
    }
    Ok(())
}

fn int_div(left: Expr, right: Expr) -> Expr {
    let argument = |argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument));
    let arguments = FunctionArgumentList {
        duplicate_treatment: None,
        args: [left, right].map(argument).to_vec(),
        clauses: Vec::new(),
    };
    Expr::Function(Function {
        name: ObjectName(vec![ObjectNamePart::Identifier(Ident::new(INT_DIV))]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(arguments),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn changed(sql: &str) -> std::result::Result<String, String> {
        let mut statement = Parser::parse_sql(&GenericDialect {}, sql).unwrap().remove(0);
        translate(&mut statement).map_err(|error| error.to_string())?;
        Ok(statement.to_string())
    }

    #[test]
    fn words_of_others_become_ours() {
        for (sql, wanted) in [
            ("SELECT a // b * 2 // (c // 3)", "SELECT intdiv(intdiv(a, b) * 2, (intdiv(c, 3)))"),
            ("SELECT 'a // b' FROM t GROUP BY a // 2", "SELECT 'a // b' FROM t GROUP BY intdiv(a, 2)"),
            ("SELECT a FROM t SETTINGS max_threads=2, join_use_nulls=1", "SELECT a FROM t"),
            ("SELECT a / b FROM t", "SELECT a / b FROM t"),
        ] {
            assert_eq!(changed(sql), Ok(wanted.to_owned()));
        }
        for setting in ["join_use_nulls=0", "max_memory_usage=1"] {
            let told = changed(&format!("SELECT a FROM t SETTINGS {setting}")).unwrap_err();
            assert!(told.contains("is not known here"), "{told}");
        }
    }
}

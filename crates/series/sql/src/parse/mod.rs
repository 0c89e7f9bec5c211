//! Text to one statement that reads.

mod joins;

use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast;

use crate::SqlError;

/// The statement of a text.
///
/// # Errors
/// [`SqlError::Query`] for what cannot be parsed, [`SqlError::Statements`] unless there is one,
/// [`SqlError::NotAQuery`] for what would change something.
pub(crate) fn statement(sql: &str) -> Result<Statement, SqlError> {
    let sql = joins::as_left_joins(sql)?;
    let parser = DFParserBuilder::new(&*sql).build().map_err(SqlError::query("parse"));
    let mut statements = parser?.parse_statements().map_err(SqlError::query("parse"))?;
    let count = statements.len();
    let (Some(statement), 1) = (statements.pop_front(), count) else {
        return Err(SqlError::Statements { count });
    };
    reads(&statement)?;
    Ok(statement)
}

fn reads(statement: &Statement) -> Result<(), SqlError> {
    let is_query = match statement {
        Statement::Explain(explain) => return reads(&explain.statement),
        Statement::Statement(statement) => matches!(
            **statement,
            ast::Statement::Query(_)
                | ast::Statement::ShowTables { .. }
                | ast::Statement::ShowColumns { .. }
                | ast::Statement::ExplainTable { .. }
        ),
        _ => false,
    };
    match is_query {
        true => Ok(()),
        false => {
            let text = statement.to_string();
            let word = text.split_whitespace().next().unwrap_or_default().to_owned();
            Err(SqlError::NotAQuery { statement: word })
        }
    }
}

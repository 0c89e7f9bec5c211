//! Text to one statement that reads.

mod joins;
mod spellings;

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
    let (Some(mut statement), 1) = (statements.pop_front(), count) else {
        return Err(SqlError::Statements { count });
    };
    reads(&statement)?;
    translate(&mut statement)?;
    Ok(statement)
}

/// The statement of a query that was parsed.
///
/// # Errors
/// [`SqlError::Query`] for words of others that are not known here.
pub(crate) fn query(query: &ast::Query) -> Result<Statement, SqlError> {
    let query = ast::Statement::Query(Box::new(query.clone()));
    let mut statement = Statement::Statement(Box::new(query));
    translate(&mut statement)?;
    Ok(statement)
}

/// Puts what DataFusion knows in the place of what it does not.
fn translate(statement: &mut Statement) -> Result<(), SqlError> {
    match statement {
        Statement::Explain(explain) => translate(&mut explain.statement),
        Statement::Statement(statement) => {
            crate::files::as_names(statement).map_err(SqlError::query("plan"))?;
            spellings::translate(statement).map_err(SqlError::query("plan"))
        }
        _ => Ok(()),
    }
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

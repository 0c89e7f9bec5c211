//! `CREATE MATERIALIZED VIEW`: text to a definition, and what can be told of it before it is planned.
//!
//! Whether a definition can be kept is decided by its plan (`crate::view::plan`), which must be bars over a table and
//! nothing else. What is looked for here is told in the words, and at the place, in which it was written.

use std::ops::ControlFlow;

use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::ast::{
    CreateTableOptions, CreateView, DuplicateTreatment, Expr, Function, FunctionArguments, GroupByExpr,
    Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, SetExpr, Spanned, Statement, TableFactor,
    Visit, Visitor,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Span;

use crate::SqlError;

const USAGE: &str = "write CREATE MATERIALIZED VIEW [IF NOT EXISTS] name AS SELECT ..";
const OF_ONE_TABLE: &str = "select from one table by its name";
const WHEN_ASKED: &str = "leave it out, and write it in the queries of the view";

/// A view that is to be made: bars that are kept.
#[derive(Debug, Clone)]
pub struct Definition {
    name: String,
    is_if_not_exists: bool,
    text: String,
    table: String,
    query: Query,
}

impl Definition {
    /// Reads `CREATE MATERIALIZED VIEW [IF NOT EXISTS] name AS SELECT ..`.
    ///
    /// # Errors
    /// [`SqlError::Query`] for what cannot be parsed, [`SqlError::Statements`] unless there is one statement,
    /// [`SqlError::NotKept`] for what no view can be: with what, where, and what helps.
    pub fn parse(sql: &str) -> Result<Self, SqlError> {
        let parse = SqlError::query("parse");
        let statements = Parser::parse_sql(&GenericDialect {}, sql);
        let mut statements =
            statements.map_err(|error| parse(DataFusionError::SQL(Box::new(error), None)))?;
        let count = statements.len();
        let (Some(statement), 1) = (statements.pop(), count) else {
            return Err(SqlError::Statements { count });
        };
        let Statement::CreateView(view) = statement else {
            return Err(not_kept("another statement", Span::empty(), USAGE));
        };
        let [ObjectNamePart::Identifier(name)] = &*view.name.0 else {
            return Err(not_kept(format!("a name of parts, {}", view.name), view.name.span(), USAGE));
        };
        if view != plain(&view) {
            return Err(not_kept("what stands besides name and query", view.name.span(), USAGE));
        }
        let table = check(&view.query)?;
        Ok(Self {
            name: name_of(name),
            is_if_not_exists: view.if_not_exists,
            text: sql.trim().to_owned(),
            table,
            query: *view.query,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether one that is there already is left as it is.
    #[must_use]
    pub fn is_if_not_exists(&self) -> bool {
        self.is_if_not_exists
    }

    /// What [`parse`](Self::parse) was given.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The table that it is of.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.table
    }

    pub(crate) fn query(&self) -> &Query {
        &self.query
    }

    fn select(&self) -> Option<&Select> {
        match &*self.query.body {
            SetExpr::Select(select) => Some(select),
            _ => None,
        }
    }

    /// Where WHERE stands, and what it says.
    pub(super) fn condition(&self) -> Option<(String, Span)> {
        let condition = self.select()?.selection.as_ref()?;
        Some((format!("WHERE {condition}"), condition.span()))
    }

    /// A group by its number.
    pub(super) fn group(&self, index: usize) -> Option<(String, Span)> {
        let GroupByExpr::Expressions(groups, _) = &self.select()?.group_by else { return None };
        let group = groups.get(index)?;
        // What a name in GROUP BY stands for tells more.
        let named = self.select()?.projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if alias.to_string() == group.to_string() => Some(expr),
            _ => None,
        });
        let group = named.unwrap_or(group);
        Some((group.to_string(), group.span()))
    }

    /// A call of an aggregate by how the plan calls it.
    pub(super) fn aggregate(&self, planned: &str) -> Option<(String, Span)> {
        let mut calls = Calls { calls: Vec::new(), found: None };
        let _ = self.select()?.projection.visit(&mut calls);
        let plain =
            |text: &str| text.replace(&format!("{}.", self.table), "").to_lowercase().replace(' ', "");
        let planned = plain(planned);
        let is_it = |(text, _): &&(String, Span)| planned.starts_with(&plain(text));
        let is_like_it = |(text, _): &&(String, Span)| {
            text.split('(').next().is_some_and(|name| planned.starts_with(&plain(name)))
        };
        calls.calls.iter().find(is_it).or_else(|| calls.calls.iter().find(is_like_it)).cloned()
    }

    /// The query as a whole.
    pub(super) fn whole(&self) -> Span {
        self.query.span()
    }
}

/// The same without what a view has no use for.
fn plain(view: &CreateView) -> CreateView {
    CreateView {
        or_alter: false,
        or_replace: false,
        materialized: true,
        secure: false,
        name: view.name.clone(),
        name_before_not_exists: view.name_before_not_exists,
        columns: Vec::new(),
        query: view.query.clone(),
        options: CreateTableOptions::None,
        cluster_by: Vec::new(),
        comment: None,
        with_no_schema_binding: false,
        if_not_exists: view.if_not_exists,
        temporary: false,
        copy_grants: false,
        to: None,
        params: None,
    }
}

/// As SQL has it: in lower case unless it is quoted.
fn name_of(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

pub(super) fn not_kept(what: impl Into<String>, place: Span, cure: impl Into<String>) -> SqlError {
    let (line, column) = (place.start.line, place.start.column);
    SqlError::NotKept { what: what.into(), line, column, cure: cure.into() }
}

/// Looks for what is told best as it was written; returns the name of the table.
fn check(query: &Query) -> Result<String, SqlError> {
    let place = query.span();
    if let Some(with) = &query.with {
        return Err(not_kept("WITH", with.span(), OF_ONE_TABLE));
    }
    if let Some(order) = &query.order_by {
        return Err(not_kept("ORDER BY", order.span(), WHEN_ASKED));
    }
    if let Some(limit) = &query.limit_clause {
        return Err(not_kept("LIMIT", limit.span(), WHEN_ASKED));
    }
    let SetExpr::Select(select) = &*query.body else {
        return Err(not_kept("what is no plain SELECT", place, "make a view of each SELECT"));
    };
    let table = table_of(select)?;
    if select.distinct.is_some() {
        return Err(not_kept("DISTINCT", select.select_token.0.span, "groups differ anyway; leave it out"));
    }
    if let Some(having) = &select.having {
        let cure =
            "bars of all groups are kept; leave it out, and write it as WHERE in the queries of the view";
        return Err(not_kept("HAVING", having.span(), cure));
    }
    match &select.group_by {
        GroupByExpr::Expressions(groups, modifiers) if !groups.is_empty() && modifiers.is_empty() => {}
        GroupByExpr::Expressions(groups, _) if groups.is_empty() => {
            return Err(not_kept("a query without groups", place, "add GROUP BY xbar(time, width)"));
        }
        other => return Err(not_kept(other.to_string(), other.span(), "name the groups in GROUP BY")),
    }
    let mut calls = Calls { calls: Vec::new(), found: None };
    let _ = query.visit(&mut calls);
    calls.found.map_or(Ok(table), Err)
}

fn table_of(select: &Select) -> Result<String, SqlError> {
    let [from] = &*select.from else {
        let (what, place) = match select.from.get(1) {
            Some(second) => ("a join", second.span()),
            None => ("a query without FROM", select.span()),
        };
        return Err(not_kept(what, place, OF_ONE_TABLE));
    };
    if let Some(join) = from.joins.first() {
        return Err(not_kept(
            "a join",
            join.span(),
            "make a view of each table, and join those when you ask",
        ));
    }
    match &from.relation {
        TableFactor::Table { name: ObjectName(parts), args: None, .. } => match &**parts {
            [ObjectNamePart::Identifier(name)] => Ok(name_of(name)),
            _ => Err(not_kept("a name of parts", from.span(), OF_ONE_TABLE)),
        },
        other => Err(not_kept(format!("FROM {other}"), from.span(), OF_ONE_TABLE)),
    }
}

/// Calls of functions, with what of an expression no view keeps.
struct Calls {
    calls: Vec<(String, Span)>,
    found: Option<SqlError>,
}

impl Visitor for Calls {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        let found = match expression {
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => {
                Some(not_kept("a subquery", expression.span(), OF_ONE_TABLE))
            }
            Expr::Function(call) => {
                self.calls.push((call.to_string(), call.span()));
                of_call(call)
            }
            _ => None,
        };
        self.found = self.found.take().or(found);
        if self.found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn of_call(call: &Function) -> Option<SqlError> {
    let is_distinct = matches!(&call.args, FunctionArguments::List(list)
        if list.duplicate_treatment == Some(DuplicateTreatment::Distinct));
    let (what, cure) = if is_distinct {
        (
            "DISTINCT",
            "values that are the same in two parts of a bar would have to be known; ask the table for it",
        )
    } else if call.filter.is_some() {
        ("FILTER", "write WHERE, of the time and one symbol, or ask the table for it")
    } else if call.over.is_some() {
        ("OVER", WHEN_ASKED)
    } else {
        return None;
    };
    Some(not_kept(format!("{what} in {call}"), call.span(), cure))
}

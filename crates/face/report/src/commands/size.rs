//! `planish size`: how many huge pages a service needs on each node, with the arithmetic.

use planish_model::{SizeRow, Sizing};

use crate::page::{Page, Report, styles};
use crate::table::{Cell, Table};
use crate::units;

impl Report for Sizing {
    const COMMAND: &'static str = "size";

    fn text(&self, page: &mut Page<'_>) {
        page.fact("service", &self.subject);
        let need = units::bytes(self.need_bytes);
        page.fact("need", &format!("{need}, and {} % headroom on top", self.headroom_percent));
        page.gap();
        let mut table = Table::new(&["pages of", "node", ">pages", ">bytes", ">free now", "can be had"]);
        for row in &self.rows {
            table.row([
                units::bytes(row.page_bytes).into(),
                row.node.map_or("-".to_owned(), |node| node.to_string()).into(),
                row.pages.to_string().into(),
                units::bytes(row.bytes).into(),
                row.free.to_string().into(),
                can_be_had(row),
            ]);
        }
        page.table(&table);
        if !self.arithmetic.is_empty() {
            page.heading("How it was computed");
            self.arithmetic.iter().for_each(|line| page.line(line));
        }
    }
}

fn can_be_had(row: &SizeRow) -> Cell {
    match &row.refused {
        None => Cell::styled("yes", styles::GOOD),
        Some(why) => Cell::styled(format!("no: {why}"), styles::WARNING),
    }
}

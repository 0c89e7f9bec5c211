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

/// What the reserve of the host and the free blocks of the node say of a row. Compaction may find more than lies
/// free, so that only what the host must keep is a no.
fn can_be_had(row: &SizeRow) -> Cell {
    match (&row.refused, row.fits) {
        _ if row.pages == 0 => "nothing is needed".into(),
        _ if row.wanted() == 0 => Cell::styled("it has them", styles::GOOD),
        (Some(why), _) => Cell::styled(format!("no: {why}"), styles::WARNING),
        (None, Some(fits)) if fits >= row.wanted() => Cell::styled("yes", styles::GOOD),
        (None, fits) => Cell::styled(perhaps(fits), styles::WARNING),
    }
}

/// Why the host may give that much and need not.
fn perhaps(fits: Option<u64>) -> String {
    match fits {
        Some(fits) => format!("perhaps: {fits} lie in free blocks, compaction must find the rest"),
        None => "perhaps: no free block is that large, only apply tells".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_in_free_blocks_is_promised() {
        let row = |fits, refused: Option<&str>| SizeRow {
            node: Some(0),
            page_bytes: 2 << 20,
            pages: 10,
            bytes: 20 << 20,
            used: 4,
            free: 0,
            fits,
            refused: refused.map(str::to_owned),
        };
        let told = |fits, refused| format!("{:?}", can_be_had(&row(fits, refused)));
        assert!(told(Some(6), None).contains("\"yes\""));
        let has_all = SizeRow { used: 10, ..row(None, Some("the host keeps 1 GiB")) };
        assert!(format!("{:?}", can_be_had(&has_all)).contains("it has them"));
        assert!(told(Some(5), None).contains("perhaps: 5 lie in free blocks"));
        assert!(told(None, None).contains("perhaps: no free block is that large"));
        assert!(told(Some(100), Some("the host keeps 1 GiB")).contains("no: the host keeps 1 GiB"));
    }
}

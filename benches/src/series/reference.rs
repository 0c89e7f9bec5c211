//! Hand-tuned C, compiled here and now from a folder that is not part of this checkout.
//!
//! The folder holds `kernels.c` with these functions over sorted, unique times; `threads` is 1 or 2:
//!
//! | function | what it does |
//! |---|---|
//! | `q1_bar` | bars by time: start / width, open, high, low, close, volume, count; returns how many |
//! | `q1_symbar` | the same by symbol; the second thread writes from the middle of the columns |
//! | `q2_ema`, `q2_ema_sym` | exponential average of one series, and by symbol |
//! | `q3_wj` | mean, highest and count of the right rows within a distance, by symbol |
//! | `q4_asof` | value of the newest right row, by symbol |
//! | `q5_vwap` | size-weighted mean price by symbol |
#![expect(unsafe_code, reason = "it calls C")]

use super::data::Table;
use anyhow::{Context, Result, ensure};
use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;
use std::process::Command;

/// The functions of the reference. The library stays loaded for the life of the process.
pub struct Reference {
    bar: BarFn,
    symbol_bar: SymbolBarFn,
    ema: EmaFn,
    keyed_ema: KeyedEmaFn,
    window: WindowFn,
    asof: AsofFn,
    vwap: VwapFn,
}

type BarFn = unsafe extern "C" fn(
    *const i64,
    *const f64,
    *const i64,
    i64,
    i64,
    c_int,
    *mut i64,
    *mut f64,
    *mut f64,
    *mut f64,
    *mut f64,
    *mut i64,
    *mut i64,
    i64,
) -> i64;
type SymbolBarFn = unsafe extern "C" fn(
    *const i64,
    *const u32,
    *const f64,
    *const i64,
    i64,
    i64,
    c_int,
    c_int,
    *mut i32,
    *mut i64,
    *mut f64,
    *mut f64,
    *mut f64,
    *mut f64,
    *mut i64,
    *mut i64,
    i64,
    *mut i64,
) -> i64;
type EmaFn = unsafe extern "C" fn(*const f64, *mut f64, i64, f64, c_int, c_int);
type KeyedEmaFn = unsafe extern "C" fn(*const u32, *const f64, *mut f64, i64, c_int, f64, c_int);
type WindowFn = unsafe extern "C" fn(
    *const i64,
    *const u32,
    i64,
    *const i64,
    *const u32,
    *const f64,
    i64,
    i64,
    c_int,
    c_int,
    *mut f64,
    *mut f64,
    *mut i64,
);
type AsofFn = unsafe extern "C" fn(
    *const i64,
    *const u32,
    i64,
    *const i64,
    *const u32,
    *const f64,
    i64,
    c_int,
    c_int,
    *mut f64,
);
type VwapFn = unsafe extern "C" fn(*const u32, *const f64, *const i64, i64, c_int, c_int, *mut f64);

/// Columns that the reference writes bars to.
pub struct Bars {
    pub symbol: Vec<i32>,
    pub bucket: Vec<i64>,
    pub open: Vec<f64>,
    pub high: Vec<f64>,
    pub low: Vec<f64>,
    pub close: Vec<f64>,
    pub volume: Vec<i64>,
    pub count: Vec<i64>,
}

impl Bars {
    pub fn with_room(rows: usize) -> Self {
        let (floats, wholes) = (vec![0.0; rows], vec![0; rows]);
        Self {
            symbol: vec![0; rows],
            bucket: wholes.clone(),
            open: floats.clone(),
            high: floats.clone(),
            low: floats.clone(),
            close: floats,
            volume: wholes.clone(),
            count: wholes,
        }
    }
}

impl Reference {
    /// Compiles `kernels.c` for this CPU and loads it.
    pub fn build(folder: &Path) -> Result<Self> {
        let temporary = tempfile::tempdir().context("make a folder for the reference")?;
        let library = temporary.path().join("reference.so");
        let mut compiler = Command::new("gcc");
        compiler.args(["-O3", "-march=native", "-mprefer-vector-width=512", "-fopenmp", "-shared", "-fPIC"]);
        compiler.arg(folder.join("kernels.c")).arg("-o").arg(&library).arg("-lm");
        let output = compiler.output().context("start gcc")?;
        ensure!(output.status.success(), "gcc: {}", String::from_utf8_lossy(&output.stderr).trim());
        let path = CString::new(library.as_os_str().as_encoded_bytes()).context("path of the reference")?;
        // SAFETY: the path is a string that ends with 0. Loading runs the initialisers of the library, which
        // are those of the OpenMP runtime: the caller named this code to be run.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        ensure!(!handle.is_null(), "load {}: the dynamic loader refuses", library.display());
        // SAFETY: each symbol is read as the type that the table above says it has, and the library is never
        // unloaded.
        unsafe {
            Ok(Self {
                bar: std::mem::transmute::<*mut c_void, BarFn>(symbol(handle, c"q1_bar")?),
                symbol_bar: std::mem::transmute::<*mut c_void, SymbolBarFn>(symbol(handle, c"q1_symbar")?),
                ema: std::mem::transmute::<*mut c_void, EmaFn>(symbol(handle, c"q2_ema")?),
                keyed_ema: std::mem::transmute::<*mut c_void, KeyedEmaFn>(symbol(handle, c"q2_ema_sym")?),
                window: std::mem::transmute::<*mut c_void, WindowFn>(symbol(handle, c"q3_wj")?),
                asof: std::mem::transmute::<*mut c_void, AsofFn>(symbol(handle, c"q4_asof")?),
                vwap: std::mem::transmute::<*mut c_void, VwapFn>(symbol(handle, c"q5_vwap")?),
            })
        }
    }

    /// Bars by time; returns how many. `out` has room for all of them.
    pub fn bar(&self, table: &Table<'_>, width: i64, threads: usize, out: &mut Bars) -> usize {
        let (rows, room) = (table.times.len() as i64, out.bucket.len() as i64);
        // SAFETY: all columns of a table have `rows` rows, all of `out` have `room`.
        let bars = unsafe {
            (self.bar)(
                table.times.as_ptr(),
                table.prices.as_ptr(),
                table.sizes.as_ptr(),
                rows,
                width,
                threads as c_int,
                out.bucket.as_mut_ptr(),
                out.open.as_mut_ptr(),
                out.high.as_mut_ptr(),
                out.low.as_mut_ptr(),
                out.close.as_mut_ptr(),
                out.volume.as_mut_ptr(),
                out.count.as_mut_ptr(),
                room,
            )
        };
        bars as usize
    }

    /// Bars by symbol and time; returns how many each thread has, the second from the middle of `out`.
    pub fn symbol_bar(&self, table: &Table<'_>, width: i64, threads: usize, out: &mut Bars) -> [usize; 2] {
        let (rows, room) = (table.times.len() as i64, out.bucket.len() as i64);
        let mut bars = [0; 2];
        // SAFETY: as above; symbols are below `symbol_count`.
        unsafe {
            (self.symbol_bar)(
                table.times.as_ptr(),
                table.symbols.as_ptr(),
                table.prices.as_ptr(),
                table.sizes.as_ptr(),
                rows,
                width,
                table.symbol_count as c_int,
                threads as c_int,
                out.symbol.as_mut_ptr(),
                out.bucket.as_mut_ptr(),
                out.open.as_mut_ptr(),
                out.high.as_mut_ptr(),
                out.low.as_mut_ptr(),
                out.close.as_mut_ptr(),
                out.volume.as_mut_ptr(),
                out.count.as_mut_ptr(),
                room,
                bars.as_mut_ptr(),
            )
        };
        bars.map(|bars: i64| bars as usize)
    }

    /// Average of one series.
    pub fn ema(&self, values: &[f64], alpha: f64, threads: usize, out: &mut [f64]) {
        assert_eq!(values.len(), out.len());
        let rows = values.len() as i64;
        // SAFETY: both columns have `rows` rows; the last argument asks for plain stores.
        unsafe { (self.ema)(values.as_ptr(), out.as_mut_ptr(), rows, alpha, threads as c_int, 0) }
    }

    /// Average by symbol.
    pub fn keyed_ema(&self, table: &Table<'_>, alpha: f64, threads: usize, out: &mut [f64]) {
        assert_eq!(table.prices.len(), out.len());
        let (rows, symbols) = (out.len() as i64, table.symbol_count as c_int);
        let (keys, values) = (table.symbols.as_ptr(), table.prices.as_ptr());
        // SAFETY: all three columns have `rows` rows, and symbols are below `symbol_count`.
        unsafe { (self.keyed_ema)(keys, values, out.as_mut_ptr(), rows, symbols, alpha, threads as c_int) }
    }

    /// Mean, highest and count of the right prices within `reach` of each left row.
    pub fn window(
        &self,
        (left, right): (&Table<'_>, &Table<'_>),
        reach: i64,
        threads: usize,
        (mean, highest, count): (&mut [f64], &mut [f64], &mut [i64]),
    ) {
        let rows = left.times.len();
        assert!(rows == mean.len() && rows == highest.len() && rows == count.len());
        // SAFETY: each table has columns of one length, the results have that of the left one, and symbols of
        // both are below `symbol_count`.
        unsafe {
            (self.window)(
                left.times.as_ptr(),
                left.symbols.as_ptr(),
                rows as i64,
                right.times.as_ptr(),
                right.symbols.as_ptr(),
                right.prices.as_ptr(),
                right.times.len() as i64,
                reach,
                left.symbol_count as c_int,
                threads as c_int,
                mean.as_mut_ptr(),
                highest.as_mut_ptr(),
                count.as_mut_ptr(),
            );
        }
    }

    /// Price of the newest right row of the symbol at each left row.
    pub fn asof(&self, left: &Table<'_>, right: &Table<'_>, threads: usize, out: &mut [f64]) {
        assert_eq!(left.times.len(), out.len());
        // SAFETY: as above.
        unsafe {
            (self.asof)(
                left.times.as_ptr(),
                left.symbols.as_ptr(),
                out.len() as i64,
                right.times.as_ptr(),
                right.symbols.as_ptr(),
                right.prices.as_ptr(),
                right.times.len() as i64,
                left.symbol_count as c_int,
                threads as c_int,
                out.as_mut_ptr(),
            );
        }
    }

    /// Size-weighted mean price of each symbol.
    pub fn vwap(&self, table: &Table<'_>, threads: usize, out: &mut [f64]) {
        assert_eq!(out.len(), table.symbol_count);
        let (rows, symbols) = (table.prices.len() as i64, table.symbol_count as c_int);
        let (keys, prices, sizes) = (table.symbols.as_ptr(), table.prices.as_ptr(), table.sizes.as_ptr());
        // SAFETY: all columns of a table have `rows` rows, symbols are below `symbol_count`, which is the
        // length of `out`.
        unsafe { (self.vwap)(keys, prices, sizes, rows, symbols, threads as c_int, out.as_mut_ptr()) }
    }
}

/// A function of a library.
///
/// # Safety
/// `handle` must come from `dlopen`.
unsafe fn symbol(handle: *mut c_void, name: &std::ffi::CStr) -> Result<*mut c_void> {
    let name_pointer: *const c_char = name.as_ptr();
    // SAFETY: the caller's promise; the name ends with 0.
    let found = unsafe { libc::dlsym(handle, name_pointer) };
    ensure!(!found.is_null(), "kernels.c has no function {}", name.to_string_lossy());
    Ok(found)
}

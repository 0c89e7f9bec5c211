//! Trades and quotes as an exchange has them, of a seed: what `planish-series load --demo` fills tables with.
//!
//! ```text
//!   a day      09:30 |#####                     ####| 16:00   more at both ends than at noon
//!   symbols    by Zipf: the k-th is traded 1 / k as often as the first
//!   bursts     one event in some hundreds begins a run of one symbol, hundreds of times as fast, that moves its price
//!   prices     walks at random on whole cents; a quote is what the walk is at, less and more half a spread
//!   trades     at the bid or at the ask that stands
//! ```
//!
//! A seed makes the same rows on every machine: there are only additions, multiplications and comparisons of floats,
//! which are exact by IEEE 754, and no function of a mathematical library, which are not.

use crate::rng::{Rng, mix};

/// 2026-01-05, a Monday, 09:30, in nanoseconds since 1970.
const FIRST_OPEN_NS: i64 = 1_767_605_400_000_000_000;
/// From 09:30 to 16:00.
const SESSION_NS: i64 = 23_400_000_000_000;
const DAY_NS: i64 = 86_400_000_000_000;
/// Trades of a day, if there are more days than one.
const DAY_TRADES: u64 = 1_000_000;
/// Share of the events that comes at the same rate all day; the rest comes more toward both ends.
const EVEN_SHARE: f64 = 0.4;
/// One event in so many begins a burst.
const BURST_EVERY: usize = 300;
/// Events of a burst, at least and at most.
const BURST_EVENTS: (usize, usize) = (20, 120);
/// How much faster events of a burst come.
const BURST_SPEED: f64 = 400.0;
/// Dollars to cents.
const CENTS: f64 = 100.0;
/// Events that are handed on at once.
const EVENTS_AT_ONCE: usize = 64 << 10;

/// What is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickOptions {
    /// Trades; there are as many quotes.
    pub trades: u64,
    /// Symbols that are traded, at least one and at most [`Ticks::SYMBOLS_MAX`].
    pub symbols: usize,
    /// The same rows for the same seed.
    pub seed: u64,
}

/// Trades, a value a row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trades {
    /// Nanoseconds since 1970, ascending.
    pub times: Vec<i64>,
    /// Numbers of symbols.
    pub symbols: Vec<u32>,
    /// Dollars, in whole cents.
    pub prices: Vec<f64>,
    /// Shares.
    pub sizes: Vec<i64>,
}

/// Quotes, a value a row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Quotes {
    /// Nanoseconds since 1970, ascending.
    pub times: Vec<i64>,
    /// Numbers of symbols.
    pub symbols: Vec<u32>,
    /// What is offered for a share: dollars, in whole cents.
    pub bids: Vec<f64>,
    /// What is asked for a share; above the bid.
    pub asks: Vec<f64>,
    /// Shares that are bid for.
    pub bid_sizes: Vec<i64>,
    /// Shares that are on offer.
    pub ask_sizes: Vec<i64>,
}

/// A symbol as it stands.
#[derive(Debug, Clone)]
struct Market {
    /// Whole cents.
    mid: i64,
    half_spread: i64,
    /// The spread when nothing happens.
    calm: i64,
    bid: i64,
    ask: i64,
}

/// Rows, in pieces that follow one another in time.
#[derive(Debug)]
pub struct Ticks {
    names: Vec<String>,
    /// Up to which share of all events each symbol has, ascending to 1.
    shares: Vec<f64>,
    markets: Vec<Market>,
    seed: u64,
    /// Of the days that are still to come, the next one first.
    days: std::collections::VecDeque<Day>,
    at: Option<Running>,
}

#[derive(Debug, Clone, Copy)]
struct Day {
    open_ns: i64,
    number: u64,
    trades: u64,
}

/// A day that is being made.
#[derive(Debug)]
struct Running {
    day: Day,
    rng: Rng,
    gaps: Gaps,
    /// Sum of the gaps so far, and of all.
    sum: f64,
    all: f64,
    trades: u64,
    quotes: u64,
    last_ns: i64,
    /// Of the last event, and so of all of its burst.
    symbol: usize,
}

/// Distances of events, and whose they are in a burst; a stream of its own, which is gone through twice.
#[derive(Debug, Clone)]
struct Gaps {
    rng: Rng,
    burst: usize,
}

impl Gaps {
    fn of(seed: u64, day: u64) -> Self {
        Self { rng: Rng::split(seed, 2 * day), burst: 0 }
    }

    /// The next distance, in any unit, and whether a burst begins with it, goes on, or there is none.
    fn next(&mut self) -> (f64, Phase) {
        let gap = exponential(&mut self.rng);
        if self.burst > 0 {
            self.burst -= 1;
            return (gap / BURST_SPEED, Phase::GoesOn);
        }
        if self.rng.below(BURST_EVERY) > 0 {
            return (gap, Phase::None);
        }
        self.burst = BURST_EVENTS.0 + self.rng.below(BURST_EVENTS.1 - BURST_EVENTS.0);
        (gap, Phase::Begins)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    None,
    Begins,
    GoesOn,
}

/// A number that is distributed as distances of independent events are, 1 on average, to some percents: the logarithm
/// is a line between powers of two.
fn exponential(rng: &mut Rng) -> f64 {
    let number = rng.next() | 1;
    let zeros = number.leading_zeros();
    let mantissa = ((number << zeros) >> 11) as f64 / (1_u64 << 53) as f64;
    (f64::from(zeros) + 2.0 * (1.0 - mantissa)) / 1.5
}

/// The share of a session at which a share of its events has come.
fn moment(share: f64) -> f64 {
    let come = |at: f64| {
        let side = 2.0 * at - 1.0;
        EVEN_SHARE * at + (1.0 - EVEN_SHARE) * (side * side * side + 1.0) / 2.0
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..45 {
        let middle = (low + high) / 2.0;
        if come(middle) < share {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Names of four letters, all different.
fn name(index: usize) -> String {
    // 7919 has no divisor in common with the number of names.
    let mut number = (index * 7919 + 1234) % Ticks::SYMBOLS_MAX;
    let mut letters = [b'A'; 4];
    for letter in letters.iter_mut().rev() {
        *letter += (number % 26) as u8;
        number /= 26;
    }
    letters.map(char::from).iter().collect()
}

impl Market {
    fn new(seed: u64, index: usize) -> Self {
        let mut rng = Rng::split(mix(seed), index as u64);
        // From 5 to 500 dollars, more of them cheap.
        let dearness = rng.below(1000) as f64 / 1000.0;
        let mid = (500.0 + 49_500.0 * dearness * dearness) as i64;
        let calm = 1 + mid / 20_000 + rng.below(3) as i64;
        Self { mid, half_spread: calm, calm, bid: mid - calm, ask: mid + calm }
    }

    /// Walks on, wide in a burst, and quotes anew.
    fn quote(&mut self, rng: &mut Rng, phase: Phase) {
        let reach = if phase == Phase::None { 1 } else { 3 };
        self.mid += rng.below(2 * reach + 1) as i64 - reach as i64;
        let widest = if phase == Phase::None { 0 } else { 4 };
        let target = self.calm + rng.below(widest + 2) as i64;
        self.half_spread = (self.half_spread + target + 1) / 2;
        // A price below a dollar would be another market.
        self.mid = self.mid.max(100 + self.half_spread);
        (self.bid, self.ask) = (self.mid - self.half_spread, self.mid + self.half_spread);
    }
}

fn dollars(cents: i64) -> f64 {
    cents as f64 / CENTS
}

/// Shares of an order: lots of 100, many small and few large; one in five is odd.
fn size(rng: &mut Rng) -> i64 {
    match rng.below(5) {
        0 => 1 + rng.below(99) as i64,
        _ => 100 * (1 + i64::from((rng.next() | 1).leading_zeros()) * (1 + rng.below(3) as i64)),
    }
}

impl Ticks {
    /// Most symbols: there are so many names.
    pub const SYMBOLS_MAX: usize = 26 * 26 * 26 * 26;

    /// Rows as they are wanted.
    #[must_use]
    pub fn new(options: &TickOptions) -> Self {
        let TickOptions { trades, symbols, seed } = *options;
        let symbols = symbols.clamp(1, Self::SYMBOLS_MAX);
        let mut shares: Vec<f64> = Vec::with_capacity(symbols);
        for rank in 1..=symbols {
            shares.push(shares.last().copied().unwrap_or(0.0) + 1.0 / rank as f64);
        }
        let all = shares.last().copied().unwrap_or(1.0);
        shares.iter_mut().for_each(|share| *share /= all);
        let count = trades.div_ceil(DAY_TRADES);
        let day = |number: u64| {
            // Five days, then two without trade.
            let days = number / 5 * 7 + number % 5;
            let open_ns = FIRST_OPEN_NS + DAY_NS * i64::try_from(days).unwrap_or(i64::MAX / DAY_NS / 2);
            // Even to one.
            let trades = trades / count + u64::from(number < trades % count);
            Day { open_ns, number, trades }
        };
        let days = (0..count).map(day).collect();
        let markets = (0..symbols).map(|index| Market::new(seed, index)).collect();
        Self { names: (0..symbols).map(name).collect(), shares, markets, seed, days, at: None }
    }

    /// Names of symbols by their numbers; the first is traded most.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The next piece; `None` behind the last.
    pub fn next_piece(&mut self) -> Option<(Trades, Quotes)> {
        let mut running = match self.at.take() {
            Some(running) => running,
            None => Running::new(self.seed, self.days.pop_front()?),
        };
        let (mut trades, mut quotes) = (Trades::default(), Quotes::default());
        for _ in 0..EVENTS_AT_ONCE {
            if running.trades == 0 && running.quotes == 0 {
                return Some((trades, quotes));
            }
            let (time, phase) = running.next_event();
            if phase != Phase::GoesOn {
                running.symbol = self.draw(&mut running.rng);
            }
            let symbol = running.symbol;
            let rng = &mut running.rng;
            let left = usize::try_from(running.trades + running.quotes).unwrap_or(usize::MAX);
            let is_trade = (rng.below(left) as u64) < running.trades;
            let market = &mut self.markets[symbol];
            if is_trade {
                running.trades -= 1;
                trades.times.push(time);
                trades.symbols.push(symbol as u32);
                trades.prices.push(dollars(if rng.below(2) == 0 { market.bid } else { market.ask }));
                trades.sizes.push(size(rng));
            } else {
                running.quotes -= 1;
                market.quote(rng, phase);
                quotes.times.push(time);
                quotes.symbols.push(symbol as u32);
                quotes.bids.push(dollars(market.bid));
                quotes.asks.push(dollars(market.ask));
                quotes.bid_sizes.push(size(rng));
                quotes.ask_sizes.push(size(rng));
            }
        }
        self.at = Some(running);
        Some((trades, quotes))
    }

    /// A symbol, by Zipf.
    fn draw(&self, rng: &mut Rng) -> usize {
        let share = (rng.next() >> 11) as f64 / (1_u64 << 53) as f64;
        self.shares.partition_point(|&upto| upto <= share).min(self.shares.len() - 1)
    }
}

impl Running {
    fn new(seed: u64, day: Day) -> Self {
        let gaps = Gaps::of(seed, day.number);
        let events = 2 * day.trades;
        let mut all = 0.0;
        let mut ahead = gaps.clone();
        (0..events).for_each(|_| all += ahead.next().0);
        let rng = Rng::split(seed, 2 * day.number + 1);
        let (trades, quotes) = (day.trades, day.trades);
        Self { day, rng, gaps, sum: 0.0, all, trades, quotes, last_ns: i64::MIN, symbol: 0 }
    }

    /// When the next event is, never before the one before it.
    fn next_event(&mut self) -> (i64, Phase) {
        let (gap, phase) = self.gaps.next();
        self.sum += gap;
        let into_ns = (moment(self.sum / self.all) * SESSION_NS as f64) as i64;
        self.last_ns = self.last_ns.max(self.day.open_ns + into_ns.min(SESSION_NS - 1));
        (self.last_ns, phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(options: &TickOptions) -> (Trades, Quotes, Vec<String>) {
        let mut ticks = Ticks::new(options);
        let (mut trades, mut quotes) = (Trades::default(), Quotes::default());
        while let Some((some, others)) = ticks.next_piece() {
            trades.times.extend(some.times);
            trades.symbols.extend(some.symbols);
            trades.prices.extend(some.prices);
            trades.sizes.extend(some.sizes);
            quotes.times.extend(others.times);
            quotes.symbols.extend(others.symbols);
            quotes.bids.extend(others.bids);
            quotes.asks.extend(others.asks);
            quotes.bid_sizes.extend(others.bid_sizes);
            quotes.ask_sizes.extend(others.ask_sizes);
        }
        (trades, quotes, ticks.names().to_vec())
    }

    const OPTIONS: TickOptions = TickOptions { trades: 150_000, symbols: 50, seed: 1 };

    /// One number of all values.
    fn sum((trades, quotes, names): &(Trades, Quotes, Vec<String>)) -> u64 {
        let mut sum = 0;
        let mut add = |number: u64| sum = mix(sum ^ number);
        let whole = [&trades.times, &trades.sizes, &quotes.times, &quotes.bid_sizes, &quotes.ask_sizes];
        whole.into_iter().flatten().for_each(|&number| add(number as u64));
        [&trades.symbols, &quotes.symbols].into_iter().flatten().for_each(|&number| add(number.into()));
        let prices = [&trades.prices, &quotes.bids, &quotes.asks];
        prices.into_iter().flatten().for_each(|number| add(number.to_bits()));
        names.iter().flat_map(|name| name.bytes()).for_each(|byte| add(byte.into()));
        sum
    }

    #[test]
    fn a_seed_makes_the_same_rows_everywhere_and_for_ever() {
        let some = all(&TickOptions { trades: 20_000, ..OPTIONS });
        assert_eq!(sum(&some), GOLDEN, "{:#x}", sum(&some));
        assert_ne!(sum(&all(&TickOptions { trades: 20_000, seed: 2, ..OPTIONS })), GOLDEN);
    }

    #[test]
    fn there_are_as_many_as_were_wanted_in_order_and_in_sessions() {
        for trades in [0, 1, 999, 1_000_001] {
            let (rows, quotes, _) = all(&TickOptions { trades, symbols: 3, seed: 9 });
            assert_eq!((rows.times.len() as u64, quotes.times.len() as u64), (trades, trades));
            for times in [&rows.times, &quotes.times] {
                assert!(times.is_sorted());
                let into = |time: &i64| (time - FIRST_OPEN_NS).rem_euclid(DAY_NS);
                assert!(times.iter().all(|time| into(time) < SESSION_NS));
            }
            let days: std::collections::BTreeSet<i64> =
                rows.times.iter().map(|time| (time - FIRST_OPEN_NS).div_euclid(DAY_NS)).collect();
            assert_eq!(days.len() as u64, trades.div_ceil(DAY_TRADES));
        }
        // The sixth day of trade is the next Monday.
        let days: Vec<i64> = Ticks::new(&TickOptions { trades: 6 * DAY_TRADES, ..OPTIONS })
            .days
            .iter()
            .map(|day| (day.open_ns - FIRST_OPEN_NS) / DAY_NS)
            .collect();
        assert_eq!(days, [0, 1, 2, 3, 4, 7]);
    }

    #[test]
    fn ends_of_a_day_are_busier_than_noon() {
        let (trades, ..) = all(&OPTIONS);
        let mut hours = [0_u32; 13];
        trades
            .times
            .iter()
            .for_each(|time| hours[((time - FIRST_OPEN_NS) / (SESSION_NS / 13)) as usize] += 1);
        assert!(hours[0] > 2 * hours[6] && hours[12] > 2 * hours[6], "{hours:?}");
    }

    #[test]
    fn symbols_are_by_zipf_and_their_names_differ() {
        let (trades, _, names) = all(&OPTIONS);
        let harmonic: f64 = (1..=50).map(|rank| 1.0 / f64::from(rank)).sum();
        let share = |symbol: u32| {
            trades.symbols.iter().filter(|&&other| other == symbol).count() as f64
                / trades.symbols.len() as f64
        };
        for (symbol, wanted) in [(0, 1.0 / harmonic), (1, 0.5 / harmonic), (9, 0.1 / harmonic)] {
            assert!((share(symbol) / wanted - 1.0).abs() < 0.25, "{symbol}: {} for {wanted}", share(symbol));
        }
        assert_eq!(names.len(), 50);
        let different: std::collections::HashSet<&String> = names.iter().collect();
        assert!(different.len() == 50 && names.iter().all(|name| name.len() == 4), "{names:?}");
    }

    #[test]
    fn trades_are_at_the_bid_or_the_ask_that_stands() {
        let (trades, quotes, _) = all(&OPTIONS);
        let mut standing = std::collections::HashMap::new();
        let (mut at, mut checked) = (0, 0);
        for row in 0..trades.times.len() {
            while at < quotes.times.len() && quotes.times[at] < trades.times[row] {
                standing.insert(quotes.symbols[at], (quotes.bids[at], quotes.asks[at]));
                at += 1;
            }
            // Of quotes at the very time of the trade nobody could say which came first.
            let is_tie = quotes.times.get(at) == Some(&trades.times[row]);
            if let (Some(&(bid, ask)), false) = (standing.get(&trades.symbols[row]), is_tie) {
                let price = trades.prices[row];
                assert!(price == bid || price == ask, "{row}: {price} at {bid} and {ask}");
                checked += 1;
            }
        }
        assert!(checked > trades.times.len() * 9 / 10, "{checked}");
        assert!(quotes.bids.iter().zip(&quotes.asks).all(|(bid, ask)| bid < ask && *bid >= 1.0));
        assert!(trades.prices.iter().all(|price| (price * 100.0).round() / 100.0 == *price));
        assert!(trades.sizes.iter().all(|&size| size > 0) && trades.sizes.iter().any(|size| size % 100 != 0));
    }

    #[test]
    fn prices_walk_and_bursts_are_of_one_symbol() {
        let (trades, quotes, _) = all(&OPTIONS);
        let of_first: Vec<f64> = (0..quotes.bids.len())
            .filter(|&row| quotes.symbols[row] == 0)
            .map(|row| quotes.bids[row])
            .collect();
        let highest = of_first.iter().copied().fold(f64::MIN, f64::max);
        let lowest = of_first.iter().copied().fold(f64::MAX, f64::min);
        assert!(highest - lowest > 0.5, "{lowest} to {highest}");
        // Far more neighbours are close together, and of one symbol, than independent ones would be.
        let gaps: Vec<i64> = trades.times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<i64>() / gaps.len() as i64;
        let close: Vec<usize> = (0..gaps.len()).filter(|&at| gaps[at] < mean / 50).collect();
        let same = close.iter().filter(|&&at| trades.symbols[at] == trades.symbols[at + 1]).count();
        assert!(close.len() > gaps.len() / 10 && same > close.len() / 2, "{} {same}", close.len());
    }

    /// Of the rows of the first test. Another number is other data under the same seed: give it a reason.
    const GOLDEN: u64 = 0xeb6f_eadf_876d_f2ca;
}

//! Lloyd's algorithm from k-means++ starts (Arthur and Vassilvitskii, 2007).
//!
//! The random choices come from a seed in the arguments, so that the same call has the same result everywhere.

use toolgate_sdk::prelude::*;

/// The most rounds of one start. Nearly always far fewer are needed.
const MAX_ROUNDS: u32 = 300;

/// What to cluster.
#[derive(Deserialize, JsonSchema)]
pub struct Points {
    /// The points, all with the same number of coordinates.
    #[schemars(length(min = 1, max = 100_000))]
    points: Vec<Vec<f64>>,
    /// Into how many clusters; at most as many as there are points.
    #[schemars(range(min = 1, max = 256))]
    clusters: usize,
    /// How often to start again; the best result counts.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 100))]
    starts: u32,
    /// Another seed gives other starts.
    #[serde(default)]
    seed: u64,
}

fn ten() -> u32 {
    10
}

/// The best clustering that was found.
#[derive(Clone, Serialize, JsonSchema)]
pub struct Clusters {
    /// The centre of each cluster.
    centres: Vec<Vec<f64>>,
    /// For each point, the index of its cluster's centre.
    assignment: Vec<usize>,
    /// The sum over all points of the squared distance to their centre.
    spread: f64,
}

/// Clusters the points, and reports after each start.
pub fn cluster(args: Points, call: &Call) -> Result<Clusters, Failure> {
    let width = args.points.first().map_or(0, Vec::len);
    if width == 0 || args.points.iter().any(|point| point.len() != width) {
        return Err(Failure::invalid_arguments("all `points` need the same number of coordinates, at least one"));
    }
    if args.clusters == 0 || args.clusters > args.points.len() || args.starts == 0 {
        return Err(Failure::invalid_arguments("`clusters` is 1 to the number of `points`, and `starts` at least 1"));
    }
    let mut dice = Dice(args.seed);
    let mut best = lloyd(&args.points, first_centres(&args.points, args.clusters, &mut dice));
    for start in 1..=args.starts {
        if start > 1 {
            let next = lloyd(&args.points, first_centres(&args.points, args.clusters, &mut dice));
            if next.spread < best.spread {
                best = next;
            }
        }
        let done = f64::from(start) / f64::from(args.starts);
        call.progress_with(&format!("start {start} of {}", args.starts), done, &json!({"spread": best.spread}));
    }
    Ok(best)
}

/// Each next centre is a point, drawn with a probability in proportion to its squared distance from the nearest existing centre.
fn first_centres(points: &[Vec<f64>], clusters: usize, dice: &mut Dice) -> Vec<Vec<f64>> {
    let mut centres = vec![points[(dice.unit() * points.len() as f64) as usize].clone()];
    let mut distances: Vec<f64> = points.iter().map(|point| distance(point, &centres[0])).collect();
    while centres.len() < clusters {
        let mut rest = dice.unit() * distances.iter().sum::<f64>();
        let drawn = distances.iter().position(|distance| {
            rest -= distance;
            rest < 0.0
        });
        let centre = points[drawn.unwrap_or(points.len() - 1)].clone();
        for (nearest, point) in distances.iter_mut().zip(points) {
            *nearest = nearest.min(distance(point, &centre));
        }
        centres.push(centre);
    }
    centres
}

/// Moves each centre to the mean of its points until no point changes its cluster.
fn lloyd(points: &[Vec<f64>], mut centres: Vec<Vec<f64>>) -> Clusters {
    let mut assignment = vec![usize::MAX; points.len()];
    for _ in 0..MAX_ROUNDS {
        let mut moved = false;
        for (slot, point) in assignment.iter_mut().zip(points) {
            let nearest = nearest(point, &centres);
            moved |= *slot != nearest;
            *slot = nearest;
        }
        if !moved {
            break;
        }
        let mut sums = vec![(0.0, vec![0.0; points[0].len()]); centres.len()];
        for (&cluster, point) in assignment.iter().zip(points) {
            sums[cluster].0 += 1.0;
            sums[cluster].1.iter_mut().zip(point).for_each(|(sum, x)| *sum += x);
        }
        // A centre that lost all its points does not move.
        for (centre, (count, sum)) in centres.iter_mut().zip(sums).filter(|(_, (count, _))| *count > 0.0) {
            *centre = sum.into_iter().map(|x| x / count).collect();
        }
    }
    let spread = assignment.iter().zip(points).map(|(&cluster, point)| distance(point, &centres[cluster])).sum();
    Clusters { centres, assignment, spread }
}

fn nearest(point: &[f64], centres: &[Vec<f64>]) -> usize {
    let by_distance = |a: &usize, b: &usize| distance(point, &centres[*a]).total_cmp(&distance(point, &centres[*b]));
    (0..centres.len()).min_by(by_distance).unwrap_or(0)
}

/// The squared distance.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum()
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Dice(u64);

impl Dice {
    /// A number from 0.0 to below 1.0, evenly distributed.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

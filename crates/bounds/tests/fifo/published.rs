//! What other programs found for networks of [`crate::families`].

use crate::families::Shape;

/// Worst flow, in tenths of a microsecond: what panco's total flow analysis with shaping finds
/// (none: infinite), and its polynomial program. Panco through Saihu, November 2026.
pub(crate) const PUBLISHED: [(Shape, usize, u64, Option<i64>, i64); 9] = [
    (Shape::Tandem, 4, 60, Some(5_228), 4_360),
    (Shape::Tandem, 8, 60, Some(13_647), 10_268),
    (Shape::Tandem, 8, 90, Some(37_202), 15_650),
    (Shape::Tandem, 12, 60, Some(24_727), 16_633),
    (Shape::Mesh, 7, 90, Some(10_552), 9_713),
    (Shape::Mesh, 9, 60, Some(24_445), 23_266),
    (Shape::Ring, 4, 90, Some(156_707), 14_350),
    (Shape::Ring, 8, 90, None, 56_240),
    (Shape::Ring, 10, 60, Some(28_390), 18_530),
];

//! The committed schema is the one that the types make.

#[test]
fn the_committed_schema_has_not_drifted() {
    let committed = include_str!("../../../schema/results.schema.json");
    assert!(
        committed == onbeat_measure::schema(),
        "schema/results.schema.json has drifted; `onbeat schema results > \
         schema/results.schema.json` makes it again"
    );
}

#[test]
fn the_committed_schema_of_simulations_has_not_drifted() {
    let committed = include_str!("../../../schema/simulation.schema.json");
    assert!(
        committed == onbeat_measure::simulation::schema(),
        "schema/simulation.schema.json has drifted; `onbeat schema simulation > \
         schema/simulation.schema.json` makes it again"
    );
}

#[test]
fn the_committed_schema_of_measurements_has_not_drifted() {
    let committed = include_str!("../../../schema/measurement.schema.json");
    assert!(
        committed == onbeat_measure::measurement::schema(),
        "schema/measurement.schema.json has drifted; `onbeat schema measurement > \
         schema/measurement.schema.json` makes it again"
    );
}

#[test]
fn the_committed_schema_of_campaigns_has_not_drifted() {
    let committed = include_str!("../../../schema/campaign.schema.json");
    assert!(
        committed == onbeat_measure::measurement::campaign_schema(),
        "schema/campaign.schema.json has drifted; `onbeat schema campaign > \
         schema/campaign.schema.json` makes it again"
    );
}

#[test]
fn the_committed_schema_of_comparisons_has_not_drifted() {
    let committed = include_str!("../../../schema/comparison.schema.json");
    assert!(
        committed == onbeat_measure::compare::schema(),
        "schema/comparison.schema.json has drifted; `onbeat schema comparison > \
         schema/comparison.schema.json` makes it again"
    );
}

#[test]
fn the_committed_schema_of_simulations_of_federations_has_not_drifted() {
    let committed = include_str!("../../../schema/lf-simulation.schema.json");
    assert!(
        committed == onbeat_measure::federation::schema(),
        "schema/lf-simulation.schema.json has drifted; `onbeat schema lf-simulation > \
         schema/lf-simulation.schema.json` makes it again"
    );
}

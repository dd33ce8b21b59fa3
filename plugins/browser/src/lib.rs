//! Tools that only the program at the user's end can run: the location of the device, and picking a file.

use std::time::Duration;

use toolgate_sdk::prelude::*;

/// Where the user's device is.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "the client writes the result; the plugin only declares it")]
struct Location {
    /// Degrees north.
    #[schemars(range(min = -90.0, max = 90.0))]
    latitude: f64,
    /// Degrees east.
    #[schemars(range(min = -180.0, max = 180.0))]
    longitude: f64,
    /// The radius in metres within which the device is with a probability of 95 %, as in the W3C Geolocation API.
    #[schemars(range(min = 0.0))]
    accuracy: f64,
}

/// Which file to ask for.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "the client reads the arguments; the plugin only declares them")]
struct Wanted {
    /// Why the file is wanted, shown to the user.
    #[schemars(length(min = 1, max = 500))]
    purpose: String,
    /// Media types to offer, like `text/csv` or `image/*`; anything where absent.
    accept: Option<Vec<String>>,
}

/// A file that the user picked.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "the client writes the result; the plugin only declares it")]
struct Picked {
    /// Its name, without a path.
    #[schemars(length(min = 1, max = 255))]
    name: String,
    /// Its media type, as the client knows it.
    media_type: String,
    /// Its content in base64 (RFC 4648, section 4).
    #[schemars(extend("contentEncoding" = "base64"))]
    content: String,
}

toolgate_sdk::declarations! {
    Tool::client::<NoArguments, Location>(
        "get_location",
        "Finds out where the user's device is: latitude, longitude and accuracy in metres.",
    )
    .title("Where you are")
    .expires(Duration::from_secs(60))
    .read_only()
    .keep_latest(1),

    Tool::client::<Wanted, Picked>("pick_file", "Lets the user pick one file on their device and reads it.")
        .requires_approval()
        .streaming()
        .title("A file of yours")
        .prompt("The agent wants one of your files: {purpose}")
        .expires(Duration::from_secs(10 * 60))
        .on_expiry(OnExpiry::Deny)
        .editable(&["accept"])
        .read_only(),
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_sdk::testing::check;

    #[test]
    fn the_declarations_are_legal() {
        check(&tools()).unwrap();
    }

    #[test]
    fn only_the_file_needs_an_approval() {
        let gated: Vec<_> = tools().iter().map(|tool| (tool.name(), tool.requires_approval())).collect();
        assert_eq!(gated, [("get_location", false), ("pick_file", true)]);
    }
}

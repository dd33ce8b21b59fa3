//! Tests that see the whole: laws, scenarios, hostile guests, crashes, doors, tidiness.

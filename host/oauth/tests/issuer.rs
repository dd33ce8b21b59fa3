//! Tokens of a simulated issuer: what is accepted, what is refused, and how often the issuer is asked.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::principal::Role;
use domain::{Span, Timestamp};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use toolgate_oauth::{
    Algorithm, Fetch, FetchError, Invalid, MAX_AGE, MAX_KEPT, NotAccepted, PAUSE, Scopes, Settings, Verified, Verifier,
    is_reserved,
};
use url::Url;

const ISSUER: &str = "https://login.example";
const AUDIENCE: &str = "https://host.example/mcp";
const METADATA: &str = "https://login.example/.well-known/openid-configuration";
const KEYS: &str = "https://login.example/keys";

/// The time of the tests, in seconds.
const NOW: u64 = 1_000;

/// A key with RSA, and tokens that its private half has signed. ring makes no such keys.
const MODULUS: &str = "nYM7Z56BKVROCtQZFn6h9jBDI5nPKkEFND9jwPXRDdEDo6r8B5au743DcXEpSVB0IEd2z1iBGn8sn0uI-A8GFN_9wUS6ONif\
     Y6pOEHTqYaBgvC7X_Eg-tpMVZWGkGyTLpMpNC21zMvmyWQ0kILpEY69bhEGTMFwMmrPTJS3g5Aowivp2qmd7PuXeUspu0TAu\
     rId8zmM5x0djrrgIp2yUt_cOv4XNdOqq9xTS1rdTEVYHUS4f9wRXOsiQDtoU3UTNDJDQPR47RP0cOoF3inT0r2BBl9zTQmkW\
     xxKn0Dk9axPJFDWaF93s35eA9Jsj_jBY5PSqSvdB7q6V_G04pgl-sw";
const RS256: &str = "eyJhbGciOiJSUzI1NiIsInR5cCI6ImF0K2p3dCIsImtpZCI6InJzYSJ9.eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGU\
     iLCJhdWQiOiJodHRwczovL2hvc3QuZXhhbXBsZS9tY3AiLCJzdWIiOiJhbm4iLCJleHAiOjIwMDAsInNjb3BlIjoidG9vbHM\
     6Y2FsbCJ9.G95sD6CxwJU6YO9_w3NEsQDjr9M0Z8VQ8iXJPflYc4_V3grIfo3W9jgKyjOOwNNP4DaRFNVmFW8qUD_PEK8tSl\
     d6p3ACNXA4F-T7JKKlCAaGtpGlCz_EC6Y4H9m5psC60Z5IIMQu32P8hCpACYbUGkQO6cV8QLlmuIPcDDcdbreiL2b7aDFcNP\
     vZS69V7q8VoZYMC_4fXuRmJtMd_J8C6Hp5kIHLwgNlZroTzM4z8vg05EI-wEdEuorxy30Vq9-HEE740aFCOD7dKZc6Kdt6T8\
     R2iiRQRrb6BDgRVfTJbuRovpUUkObjeD_24ISvEunS4KneUPKir0BVgV67T074ow";
const PS256: &str = "eyJhbGciOiJQUzI1NiIsInR5cCI6ImF0K2p3dCIsImtpZCI6InJzYSJ9.eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGU\
     iLCJhdWQiOiJodHRwczovL2hvc3QuZXhhbXBsZS9tY3AiLCJzdWIiOiJhbm4iLCJleHAiOjIwMDAsInNjb3BlIjoidG9vbHM\
     6Y2FsbCJ9.l5RmssSh1KoGasMu8dwGOS_JeGmDRApQrQokGb062vJaJOUXaYzULbNeGybU5VH3hVYDlFYy1fr3Pi-kgYk6tP\
     rWnLY-CqdR6ufR0sMB9haO9yzHkGTcUHy4T5skTP7BgkT1WX0preMM_UWutLy6aZi_bcEneRife_gv3N0O6-pcAg0dJ_23rA\
     DXx4b-J0WRz6e8n06FOLBFPBLiUkIyKZxTN1-kLoQZG5akBXcuv4BtIpciRQeKTJ2Th6Rr4414nWTClwi71ROtEqIRYdZygO\
     TLUMdSbyGwQ0hx-80VfJ3W9wHobBW9aLS5j8EbeKxAoU1YnN-Kqgyc1BzG0mZZNw";

/// The documents of an issuer, and the number of requests for its keys.
#[derive(Default)]
struct Documents {
    texts: Mutex<HashMap<&'static str, String>>,
    asked: AtomicUsize,
    others: AtomicUsize,
    /// Whether the issuer accepts requests and does not answer them.
    hangs: AtomicBool,
}

#[async_trait]
impl Fetch for Documents {
    async fn get(&self, url: &Url) -> Result<Vec<u8>, FetchError> {
        let asked = if url.as_str() == KEYS { &self.asked } else { &self.others };
        asked.fetch_add(1, Ordering::SeqCst);
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        // Other tasks run meanwhile.
        tokio::task::yield_now().await;
        let texts = self.texts.lock().unwrap();
        texts.get(url.as_str()).map(|text| text.clone().into_bytes()).ok_or_else(|| FetchError("it is down".into()))
    }
}

/// A key of the issuer.
enum Signer {
    Edwards(Ed25519KeyPair),
    Curve(EcdsaKeyPair),
}

impl Signer {
    fn edwards() -> Self {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Edwards(Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap())
    }

    fn curve() -> Self {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        Self::Curve(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.as_ref(), &random).unwrap())
    }

    fn algorithm(&self) -> &'static str {
        if matches!(self, Self::Edwards(_)) { "EdDSA" } else { "ES256" }
    }

    fn public(&self) -> Vec<u8> {
        match self {
            Self::Edwards(key) => key.public_key().as_ref().to_vec(),
            Self::Curve(key) => key.public_key().as_ref().to_vec(),
        }
    }

    fn jwk(&self, id: &str) -> Value {
        let public = self.public();
        match self {
            Self::Edwards(_) => json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": encoded(&public)}),
            Self::Curve(_) => {
                let (x, y) = public[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "kid": id, "x": encoded(x), "y": encoded(y), "use": "sig"})
            }
        }
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let signature = match self {
            Self::Edwards(key) => key.sign(message.as_bytes()).as_ref().to_vec(),
            Self::Curve(key) => key.sign(&SystemRandom::new(), message.as_bytes()).unwrap().as_ref().to_vec(),
        };
        format!("{message}.{}", encoded(&signature))
    }
}

fn encoded(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn message(header: &Value, claims: &Value) -> String {
    format!("{}.{}", encoded(header.to_string().as_bytes()), encoded(claims.to_string().as_bytes()))
}

/// A value with other members. `null` removes one.
fn with(mut value: Value, changes: &Value) -> Value {
    for (name, change) in changes.as_object().unwrap() {
        let members = value.as_object_mut().unwrap();
        members.remove(name);
        if !change.is_null() {
            members.insert(name.clone(), change.clone());
        }
    }
    value
}

fn claims() -> Value {
    json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": NOW + 60, "scope": "openid tools:call"})
}

/// An issuer with one key, and a host that accepts its tokens.
struct World {
    documents: Arc<Documents>,
    signer: Signer,
    verifier: Verifier,
}

impl World {
    fn new(signer: Signer) -> Self {
        Self::of(signer, |settings| settings)
    }

    fn of(signer: Signer, change: impl FnOnce(Settings) -> Settings) -> Self {
        let documents = Arc::new(Documents::default());
        let settings = Settings {
            issuer: ISSUER.into(),
            audience: AUDIENCE.into(),
            keys: None,
            leeway: Span::from_secs(5),
            algorithms: Algorithm::ALL.into(),
            scopes: Scopes::default(),
        };
        let verifier = Verifier::new(change(settings), documents.clone());
        let world = Self { documents, signer, verifier };
        world.publish(METADATA, &json!({"issuer": ISSUER, "jwks_uri": KEYS}));
        world.publish(KEYS, &json!({"keys": [world.signer.jwk("k")]}));
        world
    }

    fn publish(&self, place: &'static str, document: &Value) {
        self.documents.texts.lock().unwrap().insert(place, document.to_string());
    }

    /// From now on the issuer does not answer.
    fn stop(&self) {
        self.documents.texts.lock().unwrap().clear();
    }

    fn asked(&self) -> usize {
        self.documents.asked.load(Ordering::SeqCst)
    }

    fn header(&self) -> Value {
        json!({"alg": self.signer.algorithm(), "typ": "at+jwt", "kid": "k"})
    }

    /// A token that is valid except for these members.
    fn token(&self, header: &Value, changes: &Value) -> String {
        self.signer.sign(&with(self.header(), header), &with(claims(), changes))
    }

    async fn verify(&self, token: &str) -> Result<Verified, NotAccepted> {
        self.verify_at(token, Timestamp::from_millis(NOW * 1_000)).await
    }

    async fn verify_at(&self, token: &str, now: Timestamp) -> Result<Verified, NotAccepted> {
        self.verifier.verify(token, now).await
    }

    async fn refused(&self, token: &str) -> Invalid {
        match self.verify(token).await {
            Err(NotAccepted::Invalid(why)) => why,
            other => panic!("{other:?}"),
        }
    }
}

fn after(span: Span) -> Timestamp {
    Timestamp::from_millis(NOW * 1_000) + span
}

#[tokio::test]
async fn token_has_the_roles_of_its_scopes_until_it_expires() {
    for signer in [Signer::edwards(), Signer::curve()] {
        let world = World::new(signer);
        let verified = world.verify(&world.token(&json!({}), &json!({}))).await.unwrap();
        assert!(is_reserved(&verified.principal.id) && world.verifier.names().has(&verified.principal.id));
        assert_eq!(verified.principal.roles.iter().collect::<Vec<_>>(), [Role::Caller]);
        assert_eq!((verified.principal.since, verified.expires), (None, after(Span::from_secs(65))));
        // The forms of scopes, audiences and types that issuers use.
        for change in [
            json!({"scope": null, "scp": ["tools:call"]}),
            json!({"scope": null, "scp": "tools:call"}),
            json!({"aud": ["x", AUDIENCE]}),
            json!({"exp": 1_060.5}),
        ] {
            let verified = world.verify(&world.token(&json!({"typ": "JWT"}), &change)).await.unwrap();
            assert!(verified.principal.roles.has(Role::Caller), "{change}");
        }
        // A scope that means nothing here gives nothing.
        let other = world.verify(&world.token(&json!({}), &json!({"scope": "approvals:decide"}))).await.unwrap();
        assert_eq!(other.principal.roles.iter().count(), 0);
    }
}

#[tokio::test]
async fn token_with_an_rsa_signature_is_accepted() {
    let world = World::new(Signer::edwards());
    world.publish(KEYS, &json!({"keys": [{"kty": "RSA", "kid": "rsa", "n": MODULUS, "e": "AQAB"}]}));
    for token in [RS256, PS256] {
        assert!(world.verify(token).await.is_ok());
        let (message, signature) = token.rsplit_once('.').unwrap();
        let mut signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        signature[7] ^= 1;
        assert_eq!(world.refused(&format!("{message}.{}", encoded(&signature))).await, Invalid::Signature);
    }
}

#[tokio::test]
async fn wrong_claims_are_refused() {
    let world = World::new(Signer::edwards());
    for (change, why) in [
        (json!({"iss": "https://other.example"}), Invalid::Issuer),
        (json!({"iss": "https://login.example/"}), Invalid::Issuer),
        (json!({"iss": null}), Invalid::Malformed),
        (json!({"iss": [ISSUER, "https://other.example"]}), Invalid::Malformed),
        (json!({"aud": "https://host.example"}), Invalid::Audience),
        (json!({"aud": "https://host.example/mcp/"}), Invalid::Audience),
        (json!({"aud": []}), Invalid::Audience),
        (json!({"aud": null}), Invalid::Audience),
        (json!({"exp": NOW - 5}), Invalid::Expired),
        (json!({"exp": -1}), Invalid::Expired),
        (json!({"exp": null}), Invalid::Malformed),
        (json!({"exp": "2000"}), Invalid::Malformed),
        (json!({"nbf": NOW + 6}), Invalid::NotYet),
        (json!({"nbf": "now"}), Invalid::Malformed),
        (json!({"sub": ""}), Invalid::Subject),
        (json!({"sub": null}), Invalid::Subject),
        (json!({"nonce": "n"}), Invalid::Type),
        (json!({"at_hash": "h"}), Invalid::Type),
        (json!({"cnf": {"jkt": "t"}}), Invalid::Bound),
    ] {
        assert_eq!(world.refused(&world.token(&json!({}), &change)).await, why, "{change}");
    }
    for change in [json!({"exp": NOW - 4}), json!({"nbf": NOW + 5})] {
        assert!(world.verify(&world.token(&json!({}), &change)).await.is_ok(), "{change} is within the leeway");
    }
}

#[tokio::test]
async fn id_token_is_not_an_access_token() {
    let world = World::new(Signer::edwards());
    // An ID token has no scope. It may be for this host if the host's identifier is that of a client too.
    for typ in [json!("JWT"), json!(null)] {
        assert_eq!(world.refused(&world.token(&json!({"typ": typ}), &json!({"scope": null}))).await, Invalid::Type);
    }
    for typ in ["logout+jwt", "dpop+jwt", "id_token"] {
        assert_eq!(world.refused(&world.token(&json!({"typ": typ}), &json!({}))).await, Invalid::Type);
    }
}

#[tokio::test]
async fn token_without_a_signature_of_the_issuer_is_refused() {
    let world = World::new(Signer::curve());
    let right = world.token(&json!({}), &json!({}));
    let (start, signature) = right.rsplit_once('.').unwrap();
    let unsigned = |algorithm: &str| message(&with(world.header(), &json!({"alg": algorithm})), &claims());
    for algorithm in ["none", "None", "", "RS1"] {
        assert_eq!(world.refused(&format!("{}.", unsigned(algorithm))).await, Invalid::Malformed, "{algorithm}");
        assert_eq!(world.refused(&format!("{}.{signature}", unsigned(algorithm))).await, Invalid::Malformed);
    }
    // The public key as a shared secret.
    let public = world.signer.public();
    for (secret, name) in [(public.as_slice(), "HS256"), (&public[1..], "HS256")] {
        let message = unsigned(name);
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message.as_bytes());
        assert_eq!(world.refused(&format!("{message}.{}", encoded(tag.as_ref()))).await, Invalid::Algorithm);
    }
    // A key of the token's own.
    let other = Signer::curve();
    let own = with(world.header(), &json!({"jwk": other.jwk("k"), "jku": "https://other.example/keys"}));
    assert_eq!(world.refused(&other.sign(&own, &claims())).await, Invalid::Signature);
    // The algorithm of another key.
    let edwards = Signer::edwards().sign(&with(world.header(), &json!({"alg": "EdDSA"})), &claims());
    assert_eq!(world.refused(&edwards).await, Invalid::Key);
    let changed = format!("{}.{}", message(&world.header(), &with(claims(), &json!({"sub": "eve"}))), signature);
    assert_eq!(world.refused(&changed).await, Invalid::Signature);
    assert_eq!(world.refused(start).await, Invalid::Malformed);
    let critical = world.token(&json!({"crit": ["exp"]}), &json!({}));
    assert_eq!(world.refused(&critical).await, Invalid::Malformed);
    let long = world.token(&json!({}), &json!({"x": "y".repeat(16 << 10)}));
    assert_eq!(world.refused(&long).await, Invalid::Malformed);
    // An algorithm that the operator does not accept.
    let strict = World::of(Signer::curve(), |settings| Settings { algorithms: vec![Algorithm::EdDsa], ..settings });
    assert_eq!(strict.refused(&strict.token(&json!({}), &json!({}))).await, Invalid::Algorithm);
    assert_eq!(strict.asked(), 0, "the keys are not needed to refuse it");
}

#[tokio::test]
async fn made_up_key_ids_cause_few_requests() {
    let world = Arc::new(World::new(Signer::edwards()));
    let flood = async |now: Timestamp| {
        let checks = (0..200).map(|n| {
            let (world, token) = (world.clone(), world.token(&json!({"kid": format!("made-up-{n}")}), &json!({})));
            tokio::spawn(async move { world.verify_at(&token, now).await })
        });
        let mut unchecked = 0;
        for check in checks.collect::<Vec<_>>() {
            match check.await.unwrap() {
                Err(NotAccepted::NoKeys) => unchecked += 1,
                refused => assert_eq!(refused, Err(NotAccepted::Invalid(Invalid::Key))),
            }
        }
        unchecked
    };
    let lasting = |now: Timestamp| world.token(&json!({}), &json!({"exp": now.millis() / 1_000 + 60}));
    let (now, later) = (after(Span::from_secs(0)), after(PAUSE));
    assert_eq!((flood(now).await, world.asked()), (184, 1));
    assert_eq!((flood(now).await, world.asked()), (0, 1));
    assert_eq!((flood(later).await, world.asked()), (184, 2));
    assert!(world.verify_at(&lasting(later), later).await.is_ok());
    assert_eq!(world.asked(), 2);
}

#[tokio::test]
async fn requests_that_wait_for_an_attempt_make_no_other() {
    let world = Arc::new(World::new(Signer::edwards()));
    world.stop();
    let token = world.token(&json!({}), &json!({"exp": NOW + 3_600}));
    let ask = async |millis: u64| {
        // Each is a little older than the one before.
        let checks = (0..20).map(|n| {
            let (world, token) = (world.clone(), token.clone());
            let now = after(Span::from_millis(millis - n));
            tokio::spawn(async move { world.verify_at(&token, now).await })
        });
        for check in checks.collect::<Vec<_>>() {
            assert_eq!(check.await.unwrap(), Err(NotAccepted::NoKeys));
        }
    };
    let places = || world.documents.others.load(Ordering::SeqCst);
    ask(1_000).await;
    assert_eq!(places(), 2, "one attempt");
    // An attempt takes up to 12 seconds, and there is a pause after it.
    ask(15_000).await;
    assert_eq!(places(), 2);
    ask(16_100).await;
    assert_eq!(places(), 4);
    // The clock was set back.
    assert_eq!(world.verify_at(&token, after(Span::ZERO)).await, Err(NotAccepted::NoKeys));
    assert_eq!(places(), 6);
}

#[tokio::test]
async fn few_requests_wait_for_an_issuer_that_hangs() {
    let world = Arc::new(World::new(Signer::edwards()));
    let known = world.token(&json!({}), &json!({"exp": NOW + 3_600}));
    assert!(world.verify(&known).await.is_ok());
    world.documents.hangs.store(true, Ordering::SeqCst);
    let now = after(PAUSE);
    let made_up = |n: usize| world.token(&json!({"kid": format!("made-up-{n}")}), &json!({"exp": NOW + 3_600}));
    let tokens: Vec<_> = (0..1_024).map(made_up).collect();
    let mut waiting = Vec::new();
    for token in &tokens {
        let mut check = Box::pin(world.verify_at(token, now));
        match polled_once(check.as_mut()).await {
            None => waiting.push(check),
            Some(refused) => assert_eq!(refused, Err(NotAccepted::NoKeys), "it may be valid"),
        }
    }
    assert_eq!(waiting.len(), 16);
    // Requests with a known key do not wait, not even when the keys are old.
    for at in [now, after(MAX_AGE)] {
        assert!(polled_once(std::pin::pin!(world.verify_at(&known, at))).await.unwrap().is_ok());
    }
    // The place of a client that leaves is free again.
    drop(waiting.pop());
    assert!(polled_once(std::pin::pin!(world.verify_at(&tokens[0], now))).await.is_none());
}

#[tokio::test]
async fn new_key_of_the_issuer_is_found() {
    let world = World::new(Signer::edwards());
    assert!(world.verify(&world.token(&json!({}), &json!({}))).await.is_ok());
    let next = Signer::curve();
    world.publish(KEYS, &json!({"keys": [next.jwk("next")]}));
    let header = json!({"alg": "ES256", "typ": "at+jwt", "kid": "next"});
    let token = next.sign(&header, &with(claims(), &json!({"exp": NOW + 3_600})));
    assert_eq!(world.refused(&token).await, Invalid::Key);
    assert!(world.verify_at(&token, after(PAUSE)).await.is_ok());
    // The withdrawn key is no longer accepted.
    let old = world.token(&json!({}), &json!({"exp": NOW + 3_600}));
    assert_eq!(world.verify_at(&old, after(PAUSE)).await, Err(NotAccepted::Invalid(Invalid::Key)));
}

#[tokio::test]
async fn withdrawn_key_is_forgotten_after_the_bounded_age() {
    let world = World::new(Signer::edwards());
    let token = world.token(&json!({}), &json!({"exp": NOW + 100_000_000}));
    assert!(world.verify(&token).await.is_ok());
    world.publish(KEYS, &json!({"keys": [Signer::edwards().jwk("next")]}));
    let almost = Timestamp::from_millis(after(MAX_AGE).millis() - 1);
    assert!(world.verify_at(&token, almost).await.is_ok());
    assert_eq!(world.verify_at(&token, after(MAX_AGE)).await, Err(NotAccepted::Invalid(Invalid::Key)));
    assert_eq!(world.asked(), 2);
}

#[tokio::test]
async fn keys_are_kept_while_the_issuer_is_down() {
    let world = World::new(Signer::edwards());
    let token = world.token(&json!({}), &json!({"exp": NOW + 100_000_000}));
    assert!(world.verify(&token).await.is_ok());
    world.stop();
    assert!(world.verify_at(&token, after(MAX_AGE)).await.is_ok());
    let almost = Timestamp::from_millis(after(MAX_KEPT).millis() - 1);
    assert!(world.verify_at(&token, almost).await.is_ok());
    assert_eq!(world.verify_at(&token, after(MAX_KEPT)).await, Err(NotAccepted::NoKeys));
}

#[tokio::test]
async fn without_keys_no_token_is_called_invalid() {
    let world = World::new(Signer::edwards());
    world.stop();
    let token = world.token(&json!({}), &json!({}));
    for _ in 0..50 {
        assert_eq!(world.verify(&token).await, Err(NotAccepted::NoKeys));
    }
    // Both places of metadata were asked once.
    assert_eq!(world.documents.others.load(Ordering::SeqCst), 2);
    world.publish(METADATA, &json!({"issuer": ISSUER, "jwks_uri": KEYS}));
    world.publish(KEYS, &json!({"keys": [world.signer.jwk("k")]}));
    assert_eq!(world.verify(&token).await, Err(NotAccepted::NoKeys), "the pause is not over");
    assert!(world.verify_at(&token, after(Span::from_secs(15))).await.is_ok());
}

#[tokio::test]
async fn client_that_leaves_does_not_stop_a_fetch() {
    let world = World::new(Signer::edwards());
    let token = world.token(&json!({}), &json!({}));
    {
        let mut check = std::pin::pin!(world.verify(&token));
        // It begins and is dropped.
        assert!(polled_once(check.as_mut()).await.is_none());
    }
    while world.asked() == 0 {
        tokio::task::yield_now().await;
    }
    tokio::task::yield_now().await;
    assert!(world.verify(&token).await.is_ok());
    assert_eq!(world.asked(), 1);
}

/// Polls a future once.
async fn polled_once<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(match future.as_mut().poll(context) {
            std::task::Poll::Ready(value) => Some(value),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

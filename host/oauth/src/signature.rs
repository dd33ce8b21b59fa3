//! Signatures of tokens, with ring, which TLS uses too. `jsonwebtoken` gets them as its provider. It verifies and never signs.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256, RsaParameters,
    RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: |algorithm, key| Ok(Box::new(Signature::new(*algorithm, key)?)),
    key_utils: KeyUtils::new_unimplemented(),
};

/// Lets `jsonwebtoken` verify with ring. A program that has chosen another provider keeps it.
pub(crate) fn install() {
    let _ = PROVIDER.install_default();
}

/// Checks signatures of one key.
struct Signature {
    algorithm: Algorithm,
    key: DecodingKey,
    check: Check,
}

enum Check {
    Rsa(&'static RsaParameters),
    Point(&'static dyn VerificationAlgorithm),
}

impl Signature {
    fn new(algorithm: Algorithm, key: &DecodingKey) -> Result<Self> {
        let (family, check) = match algorithm {
            Algorithm::RS256 => (AlgorithmFamily::Rsa, Check::Rsa(&RSA_PKCS1_2048_8192_SHA256)),
            Algorithm::PS256 => (AlgorithmFamily::Rsa, Check::Rsa(&RSA_PSS_2048_8192_SHA256)),
            Algorithm::ES256 => (AlgorithmFamily::Ec, Check::Point(&ECDSA_P256_SHA256_FIXED)),
            Algorithm::EdDSA => (AlgorithmFamily::Ed, Check::Point(&ED25519)),
            // Among them those with a shared secret.
            _ => return Err(ErrorKind::UnsupportedAlgorithm.into()),
        };
        if key.family() != family {
            return Err(ErrorKind::InvalidKeyFormat.into());
        }
        Ok(Self { algorithm, key: key.clone(), check })
    }
}

impl JwtVerifier for Signature {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for Signature {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let checked = match (&self.check, self.key.kind()) {
            (Check::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Check::Point(algorithm), DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(*algorithm, point).verify(message, signature)
            }
            _ => return Err(Error::new()),
        };
        checked.map_err(|_| Error::new())
    }
}

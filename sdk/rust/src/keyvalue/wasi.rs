//! The store of a real call: wasi:keyvalue, interfaces `store` and `atomics`.

use super::{Error, Lost};

mod bindings {
    #![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated; the documentation is in wit/")]
    wit_bindgen::generate!({
        path: "../../wit/v0.1",
        world: "wasi:keyvalue/imports@0.2.0-draft2",
    });
}

use bindings::wasi::keyvalue::{atomics, store};

pub(super) struct Bucket(store::Bucket);

impl Bucket {
    pub(super) fn open(name: &str) -> Result<Self, Error> {
        Ok(Self(store::open(name)?))
    }

    pub(super) fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.0.get(key)?)
    }

    pub(super) fn set(&self, key: &str, value: &[u8]) -> Result<(), Error> {
        Ok(self.0.set(key, value)?)
    }

    pub(super) fn delete(&self, key: &str) -> Result<(), Error> {
        Ok(self.0.delete(key)?)
    }

    pub(super) fn increment(&self, key: &str, by: i64) -> Result<i64, Error> {
        Ok(atomics::increment(&self.0, key, by)?)
    }

    pub(super) fn list_keys(&self, cursor: Option<String>) -> Result<(Vec<String>, Option<String>), Error> {
        let page = self.0.list_keys(cursor.as_deref())?;
        Ok((page.keys, page.cursor))
    }

    pub(super) fn cas(&self, key: &str) -> Result<Cas, Error> {
        Ok(Cas(atomics::Cas::new(&self.0, key)?))
    }
}

pub(super) struct Cas(atomics::Cas);

impl Cas {
    pub(super) fn current(&self) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.0.current()?)
    }

    pub(super) fn swap(self, value: &[u8]) -> Result<(), Lost<Self>> {
        atomics::swap(self.0, value).map_err(|error| match error {
            atomics::CasError::CasFailed(again) => Lost::Race(Self(again)),
            atomics::CasError::StoreError(error) => Lost::Store(error.into()),
        })
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::NoSuchStore => Self::NoSuchStore,
            store::Error::AccessDenied => Self::AccessDenied,
            store::Error::Other(why) => Self::Other(why),
        }
    }
}

package keyvalue

import (
	"toolgate"
	"toolgate/internal/bindings/wasi_keyvalue_atomics"
	"toolgate/internal/bindings/wasi_keyvalue_store"
	types "toolgate/internal/wit/types"
)

type hostBucket struct{ bucket *wasi_keyvalue_store.Bucket }

func open(name string) (bucket, error) {
	result := wasi_keyvalue_store.Open(name)
	if result.IsErr() {
		return nil, explain(result.Err())
	}
	return hostBucket{result.Ok()}, nil
}

func explain(problem wasi_keyvalue_store.Error) error {
	switch problem.Tag() {
	case wasi_keyvalue_store.ErrorNoSuchStore:
		return toolgate.Failed("%w", ErrNoSuchStore)
	case wasi_keyvalue_store.ErrorAccessDenied:
		return toolgate.Failed("%w", ErrAccessDenied)
	default:
		return toolgate.Unavailable("the key-value store cannot be used now: %s", problem.Other())
	}
}

func (b hostBucket) get(key string) ([]byte, bool, error) {
	return optional(b.bucket.Get(key))
}

func (b hostBucket) set(key string, value []byte) error {
	return done(b.bucket.Set(key, value))
}

func (b hostBucket) delete(key string) error {
	return done(b.bucket.Delete(key))
}

func (b hostBucket) increment(key string, by int64) (int64, error) {
	result := wasi_keyvalue_atomics.Increment(b.bucket, key, by)
	if result.IsErr() {
		return 0, explain(result.Err())
	}
	return result.Ok(), nil
}

func (b hostBucket) list(cursor *string) ([]string, *string, error) {
	from := types.None[string]()
	if cursor != nil {
		from = types.Some(*cursor)
	}
	result := b.bucket.ListKeys(from)
	if result.IsErr() {
		return nil, nil, explain(result.Err())
	}
	page := result.Ok()
	if page.Cursor.IsSome() {
		next := page.Cursor.Some()
		return page.Keys, &next, nil
	}
	return page.Keys, nil, nil
}

func (b hostBucket) cas(key string) (cas, error) {
	result := wasi_keyvalue_atomics.CasNew(b.bucket, key)
	if result.IsErr() {
		return nil, explain(result.Err())
	}
	return hostCas{result.Ok()}, nil
}

type hostCas struct{ cas *wasi_keyvalue_atomics.Cas }

func (c hostCas) current() ([]byte, bool, error) { return optional(c.cas.Current()) }

func (c hostCas) swap(value []byte) (cas, error) {
	result := wasi_keyvalue_atomics.Swap(c.cas, value)
	if result.IsOk() {
		return nil, nil
	}
	problem := result.Err()
	if problem.Tag() == wasi_keyvalue_atomics.CasErrorCasFailed {
		return hostCas{problem.CasFailed()}, nil
	}
	return nil, explain(problem.StoreError())
}

func (c hostCas) drop() { c.cas.Drop() }

func optional(result types.Result[types.Option[[]byte], wasi_keyvalue_store.Error]) ([]byte, bool, error) {
	if result.IsErr() {
		return nil, false, explain(result.Err())
	}
	if found := result.Ok(); found.IsSome() {
		return found.Some(), true, nil
	}
	return nil, false, nil
}

func done(result types.Result[types.Unit, wasi_keyvalue_store.Error]) error {
	if result.IsErr() {
		return explain(result.Err())
	}
	return nil
}

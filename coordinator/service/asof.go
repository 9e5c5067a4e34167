package service

import (
	"context"

	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/resource"
)

// AsOf says how new the state is that a read shows. The zero value is the newest state:
// every write that was acknowledged to anybody before the read began.
type AsOf struct {
	// Cached is the state that the coordinator has, however old it is. It costs no
	// question to the store.
	Cached bool
	// NotBefore is a revision that the state has reached; 0 = the newest state.
	NotBefore resource.Revision
}

// ParseAsOf reads a resourceVersion of a get or of a list: "" is the newest state, "0" the
// state that the coordinator has, a version one that is not older.
func ParseAsOf(text string) (AsOf, error) {
	switch text {
	case "":
		return AsOf{}, nil
	case "0":
		return AsOf{Cached: true}, nil
	}
	at, err := objects.ParseID(text)
	return AsOf{NotBefore: at.Revision}, err
}

type asOfKey struct{}

// WithAsOf gives the read that has the context as its state. Without it a read shows the
// newest state.
func WithAsOf(ctx context.Context, a AsOf) context.Context {
	if a == (AsOf{}) {
		return ctx
	}
	return context.WithValue(ctx, asOfKey{}, a)
}

// AsOfRead is the state of WithAsOf.
func AsOfRead(ctx context.Context) AsOf {
	a, _ := ctx.Value(asOfKey{}).(AsOf)
	return a
}

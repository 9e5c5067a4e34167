package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// replacePause is the time between two looks whether a removed object is gone.
const replacePause = 100 * time.Millisecond

// replace creates an allocation or a job, and removes one of the same name first that
// has ended. What has not ended stays, and is an error.
func (a *app) replace(ctx context.Context, o object, wait time.Duration) (object, error) {
	if k := o.kind(); k != allocationKind && k != jobKind {
		return a.create(ctx, o, wait)
	}
	if err := a.removeEnded(ctx, o); err != nil {
		return object{}, err
	}
	return a.create(ctx, o, wait)
}

// removeEnded removes the object of the same kind and name, if there is one and it has
// ended, and waits until it is gone.
func (a *app) removeEnded(ctx context.Context, o object) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	namespace, name := o.meta().Namespace, o.meta().Name
	before, err := a.fetch(ctx, o.kind(), namespace, name, sdk.GetOptions{})
	switch {
	case isNotFound(err):
		return nil
	case err != nil:
		return err
	}
	if phase, _ := before.state(); !phase.Ended() {
		return fmt.Errorf("it is %s: --replace removes only an object that has ended; end it first: muster delete %s %s%s",
			phase, o.kind(), name, a.inNamespace(namespace))
	}
	uid := before.meta().UID
	_, err = a.remove(ctx, o.kind(), namespace, name, api.DeleteOptions{Preconditions: &api.Preconditions{UID: uid}})
	for err == nil {
		before, err = a.fetch(ctx, o.kind(), namespace, name, sdk.GetOptions{})
		if err == nil && before.meta().UID != uid {
			return fmt.Errorf("another object has taken its name meanwhile")
		}
		if err != nil {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the object that has ended is not gone after %s: %w", callTimeout, ctx.Err())
		case <-time.After(replacePause):
		}
	}
	if isNotFound(err) {
		return nil
	}
	return err
}

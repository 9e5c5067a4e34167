package sdk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/musterd/muster/api"
)

// watchedAnew is the pause before WaitFor lists anew after the server has dropped
// the changes that it wants.
const watchedAnew = 200 * time.Millisecond

// ErrNoObject ends a wait for something that an object does, where there is no
// object.
var ErrNoObject = errors.New("there is no such object")

// Condition reports whether an object is as a caller wants it; nil is an object
// that is not there. An error ends the wait.
type Condition[T any] func(object *T) (bool, error)

// Deleted holds when there is no object.
func Deleted[T any](object *T) (bool, error) { return object == nil, nil }

// Running holds when an allocation or a job runs. An object that has ended, or
// that is not there, is an error.
func Running[T api.Allocation | api.Job](object *T) (bool, error) {
	if object == nil {
		return false, ErrNoObject
	}
	name, phase, message := standing(object)
	if phase.Ended() {
		return false, fmt.Errorf("%s does not run any more: its phase is %s: %s", name, phase, message)
	}
	return phase == api.Running, nil
}

// Ended holds when an allocation or a job is at an end, or is not there.
func Ended[T api.Allocation | api.Job](object *T) (bool, error) {
	if object == nil {
		return true, nil
	}
	_, phase, _ := standing(object)
	return phase.Ended(), nil
}

// standing are the name, the phase and the message of an object.
func standing(object any) (string, api.Phase, string) {
	switch o := object.(type) {
	case *api.Allocation:
		return o.Metadata.Namespace + "/" + o.Metadata.Name, o.Status.Phase, o.Status.Message
	case *api.Job:
		return o.Metadata.Namespace + "/" + o.Metadata.Name, o.Status.Phase, o.Status.Message
	}
	panic(fmt.Sprintf("sdk: %T has no phase", object))
}

// WaitFor returns an object as soon as a condition holds, or as it was last
// where the condition holds because the object is gone: nil where it was never
// there. It reads the object once, and then follows a watch until ctx ends.
func (f Followed[T]) WaitFor(ctx context.Context, name string, holds Condition[T]) (*T, error) {
	r := f.resource
	if r.kind.Namespaced && r.at.path == collection("", r.kind.Plural) {
		return nil, fmt.Errorf("wait for %s %s: select the namespace that it is in", r.kind.Name, name)
	}
	only := "metadata.name=" + name
	for {
		list, err := r.List(ctx, ListOptions{FieldSelector: only})
		if err != nil {
			return nil, err
		}
		var object *T
		if len(list.Items) > 0 {
			object = list.Items[0].Value.(*T)
		}
		if held, err := holds(object); held || err != nil {
			return object, f.waitError(name, err)
		}
		object, err = f.waitAfter(ctx, WatchOptions{FieldSelector: only, After: list.Meta.ResourceVersion}, object, holds)
		var status *api.Status
		if !errors.As(err, &status) || status.Code != http.StatusGone {
			return object, f.waitError(name, err)
		}
		select { // the server keeps these changes no more
		case <-ctx.Done():
			return nil, f.waitError(name, ctx.Err())
		case <-time.After(watchedAnew):
		}
	}
}

// waitAfter follows a watch from a list on until a condition holds; last is the
// object as the list has it.
func (f Followed[T]) waitAfter(ctx context.Context, o WatchOptions, last *T, holds Condition[T]) (*T, error) {
	for change, err := range f.Watch(ctx, o) {
		if err != nil {
			return last, err
		}
		last = change.Object
		now := last
		if change.Type == "DELETED" {
			now = nil
		}
		if held, err := holds(now); held || err != nil {
			return last, err
		}
	}
	return last, ctx.Err()
}

// waitError names the object that a wait was for.
func (f Followed[T]) waitError(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("wait for %s %s: %w", f.resource.kind.Name, name, err)
}

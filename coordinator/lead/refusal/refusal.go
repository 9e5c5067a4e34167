// Package refusal words the answers to changes without a success in the store. Whether a
// change is tried again is decided elsewhere.
package refusal

import (
	"errors"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
)

// NotTaken is the answer where the store has refused a change for certain: 422 for a
// change above the store's bounds, else 503 with the store's reason, where err is not nil.
func NotTaken(object, change string, err error) *api.Status {
	if errors.As(err, new(*record.TooLargeError)) || errors.As(err, new(*record.TooManyOpsError)) {
		return api.Errorf(422, "%s: %v", object, err)
	}
	if err == nil { // other changes were first
		return api.Errorf(503, "%s: the store did not take the %s; ask again", object, change)
	}
	status := api.Errorf(503, "%s: the store did not take the %s: %v; ask again", object, change, err)
	switch {
	case errors.Is(err, record.ErrNoSpace):
		status.Reason = api.StoreOutOfSpace
	case errors.Is(err, record.ErrReadOnly):
		status.Reason = api.StoreReadOnly
	}
	return status
}

// Overtaken is the answer to a change after n tries, each overtaken by other changes, or
// refused by the store (NotTaken). advice ends the sentence.
func Overtaken(object, change string, n int, err error, advice string) *api.Status {
	if err != nil {
		return NotTaken(object, change, err)
	}
	return api.Errorf(409, "%s changed %d times before the %s could be made%s", object, n, change, advice)
}

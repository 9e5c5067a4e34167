package coordinator

import (
	"context"
	"errors"
	"net/http"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/follow"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
)

var _ service.Watches = (*Coordinator)(nil)

// Watch implements service.Watches.
func (c *Coordinator) Watch(ctx context.Context, o objects.WatchOptions) (service.Watch, error) {
	w, err := c.follower.Watch(ctx, o)
	if err != nil {
		return nil, watchRefusal(err)
	}
	return watch{w}, nil
}

// watch is a follower's watch with the errors of the API.
type watch struct{ *follow.Watch }

// Next implements service.Watch.
func (w watch) Next(ctx context.Context) (objects.Changes, error) {
	c, err := w.Watch.Next(ctx)
	if err != nil && ctx.Err() == nil {
		err = watchRefusal(err)
	}
	return c, err
}

// watchRefusal words the reason why a watch cannot go on.
func watchRefusal(err error) error {
	var gone *objects.GoneError
	switch {
	case errors.As(err, &gone):
		return api.Errorf(http.StatusGone, "%v", err)
	case errors.Is(err, follow.ErrBehind):
		return api.Errorf(http.StatusServiceUnavailable, "%v; ask again", err)
	}
	return err
}

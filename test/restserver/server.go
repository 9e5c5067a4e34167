// Package restserver serves a resttest.Cluster over HTTP with everything that a
// coordinator serves from its cache of the store: watches above all. Several
// servers of one cluster stand for its coordinators.
package restserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/follow"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/resttest"
)

// New returns the handler of one coordinator, and the end of what runs for it.
func New(cluster *resttest.Cluster, token string) (handler http.Handler, stop func()) {
	f := follow.New(follow.Options{
		Store: cluster.Store(), Log: slog.New(slog.DiscardHandler), Check: time.Second, Leads: func() bool { return false },
		Moved: func(resource.Revision) {}, Registered: func(follow.News) {}, Forget: func(context.Context, *record.WentBackError) {},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f.Run(ctx) }()
	handler = rest.NewHandler(rest.Config{Service: cluster, Authenticator: service.StaticToken(token), Watches: watches{f}, Version: "v1", Notices: cluster.Notices})
	return handler, func() { cancel(); <-done }
}

// watches serves the watches of a follower with the errors of the API.
type watches struct{ *follow.Follower }

// Watch implements service.Watches.
func (w watches) Watch(ctx context.Context, o objects.WatchOptions) (service.Watch, error) {
	got, err := w.Follower.Watch(ctx, o)
	if err != nil {
		return nil, refusal(err)
	}
	return watch{got}, nil
}

type watch struct{ *follow.Watch }

// Next implements service.Watch.
func (w watch) Next(ctx context.Context) (objects.Changes, error) {
	c, err := w.Watch.Next(ctx)
	if err != nil && ctx.Err() == nil {
		err = refusal(err)
	}
	return c, err
}

func refusal(err error) error {
	var gone *objects.GoneError
	switch {
	case errors.As(err, &gone):
		return api.Errorf(http.StatusGone, "%v", err)
	case errors.Is(err, follow.ErrBehind):
		return api.Errorf(http.StatusServiceUnavailable, "%v; ask again", err)
	}
	return err
}

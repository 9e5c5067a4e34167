package grpcapi

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/test/resttest"
	"github.com/musterd/muster/wire"
)

func TestHealthNeedsNoToken(t *testing.T) {
	conn := connect(t, door(t, resttest.New(time.Now), nil))
	client := grpc_health_v1.NewHealthClient(conn)
	for _, name := range []string{"", "muster.api.v1.Allocations", "muster.api.v1.Tenants", "muster.api.v1.Usage"} {
		got, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: name})
		if err != nil || got.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"muster.v1.Agent", "muster.api.v1.Weather", "grpc.health.v1.Health"} {
		if _, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: name}); wire.FromRefusal(err).Code != 404 {
			t.Errorf("%s is not served here: %v", name, err)
		}
	}
}

// A watch of health has the state at once, and each change of readiness.
func TestHealthIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openWatchDoor(t, mem.Open(mem.Options{}))
		var away atomic.Bool
		client := grpc_health_v1.NewHealthClient(d.conn)
		d.api.Ready = func(context.Context) error {
			if away.Load() {
				return errors.New("nothing is loaded")
			}
			return nil
		}
		known, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "muster.api.v1.Nodes"})
		if err != nil {
			t.Fatal(err)
		}
		unknown, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "muster.api.v1.Weather"})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []grpc_health_v1.HealthCheckResponse_ServingStatus{
			grpc_health_v1.HealthCheckResponse_SERVING, grpc_health_v1.HealthCheckResponse_NOT_SERVING, grpc_health_v1.HealthCheckResponse_SERVING,
		} {
			got, err := known.Recv()
			if err != nil || got.GetStatus() != want {
				t.Fatalf("got %v, %v; want %s", got, err, want)
			}
			time.Sleep(time.Hour) // of silence, which ends no stream
			away.Store(!away.Load())
		}
		if got, err := unknown.Recv(); err != nil || got.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN {
			t.Errorf("a service that is not here: %v, %v", got, err)
		}
		for len(d.api.health.watches) < mostHealthWatches {
			d.api.health.watches <- struct{}{}
		}
		one, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		if err == nil {
			_, err = one.Recv()
		}
		if status.Code(err) != codes.ResourceExhausted {
			t.Errorf("one watch too many: %v", err)
		}
	})
}

package sdk_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

func TestMetrics(t *testing.T) {
	_, client := serve(t, nil)
	if _, err := client.Allocations("ml").Create(t.Context(), allocation("a", "3"), sdk.CreateOptions{Wait: time.Minute}); err != nil {
		t.Fatal(err)
	}
	cluster, err := client.Metrics().Cluster(t.Context())
	if err != nil || cluster.Cluster.CPU.Requested != "3000m" || cluster.Cluster.Nodes.Total != 2 {
		t.Errorf("the cluster is %+v, %v", cluster, err)
	}
	queues, err := client.Metrics().Queues(t.Context())
	if err != nil || len(queues.Queues) != 1 || queues.Queues[0].Name != "default" || queues.Queues[0].Depth != 0 {
		t.Errorf("the queues are %+v, %v", queues, err)
	}
	for _, period := range []time.Duration{0, time.Hour} {
		usage, err := client.Metrics().Tenant(t.Context(), "ml", period)
		if err != nil || usage.Resources["cpu"].PeakUsage != "3" {
			t.Errorf("the usage over %s is %+v, %v", period, usage, err)
		}
	}
	var status *api.Status
	if _, err := client.Metrics().Tenant(t.Context(), "ml", time.Second); !errors.As(err, &status) || status.Code != http.StatusUnprocessableEntity {
		t.Errorf("a period of 1 s: %v", err)
	}
}

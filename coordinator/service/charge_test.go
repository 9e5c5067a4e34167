package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/resttest"
)

// till notes the units of each request, and refuses requests on demand.
type till struct {
	units   []int64
	refused *api.Status
}

func (c *till) Begin(_ context.Context, units int64, _ time.Duration) (end func(), status *api.Status) {
	c.units = append(c.units, units)
	return func() {}, c.refused
}

// Each request costs the members behind the request: the new, the changed, the explained.
// Labels and ends are free, and a refused request leaves the job as before.
func TestARequestCostsItsMembers(t *testing.T) {
	const members = 40
	patch := func(spec string) func(service.Service) error {
		return func(s service.Service) error {
			_, err := s.PatchJob(t.Context(), "ml", "train", api.WorkPatch{Spec: json.RawMessage(spec)})
			return err
		}
	}
	document := func(name string) (service.Create, *api.Job) {
		doc := fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"parallelism":%d,"template":{"spec":{"resources":{"requests":{"cpu":"1"}}}}}}`, name, members)
		j, status := api.DecodeJob([]byte(doc))
		if status != nil {
			t.Fatal(status)
		}
		return service.Create{Namespace: "ml", Document: []byte(doc)}, j
	}
	for name, c := range map[string]struct {
		ask  func(service.Service) error
		want int64 // -1 = the request is not charged
	}{
		"a creation": {func(s service.Service) error {
			create, j := document("next")
			_, err := s.CreateJob(t.Context(), create, j)
			return err
		}, members},
		"a dry run": {func(s service.Service) error {
			create, j := document("next")
			_, err := s.TryJob(t.Context(), create, j, service.ExplainOptions{})
			return err
		}, 20 + members},
		"an explanation": {func(s service.Service) error {
			_, err := s.ExplainJob(t.Context(), "ml", "train", service.ExplainOptions{})
			return err
		}, 20 + members},
		"a dry run of an allocation": {func(s service.Service) error {
			doc := []byte(`{"metadata":{"name":"one"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`)
			a, status := api.DecodeAllocation(doc)
			if status != nil {
				return status
			}
			_, err := s.TryAllocation(t.Context(), service.Create{Namespace: "ml", Document: doc}, a, service.ExplainOptions{})
			return err
		}, 20},
		"an explanation of an allocation": {func(s service.Service) error {
			_, err := s.ExplainAllocation(t.Context(), "ml", "train-0", service.ExplainOptions{})
			return err
		}, 20},
		"more members":                {patch(`{"parallelism":1000}`), 1000 - members},
		"one more":                    {patch(fmt.Sprintf(`{"parallelism":%d}`, members+1)), 1},
		"as many members":             {patch(fmt.Sprintf(`{"parallelism":%d}`, members)), members},
		"fewer members":               {patch(`{"parallelism":1}`), members - 1},
		"too many members":            {patch(`{"parallelism":1000000000}`), 0}, // the request is refused
		"no members":                  {patch(`{"parallelism":0}`), 0},
		"a suspension":                {patch(`{"suspend":true}`), members},
		"another queue":               {patch(`{"queue":"default"}`), members},
		"more members in a new queue": {patch(`{"queue":"default","parallelism":50}`), 10},
		"a boost": {func(s service.Service) error {
			_, err := s.BoostJob(t.Context(), "ml", "train", api.BoostOptions{NewPriority: 1})
			return err
		}, members},
		"a label": {func(s service.Service) error {
			p, status := api.DecodeWorkPatch(api.KindJob, "ml", "train", []byte(`{"metadata":{"labels":{"a":"b"}}}`))
			if status != nil {
				return status
			}
			_, err := s.PatchJob(t.Context(), "ml", "train", p)
			return err
		}, 0},
		"the end": {func(s service.Service) error {
			_, err := s.DeleteJob(t.Context(), "ml", "train", api.DeleteOptions{})
			return err
		}, -1},
	} {
		for _, refused := range []*api.Status{nil, api.Errorf(http.StatusTooManyRequests, "no units")} {
			t.Run(fmt.Sprint(name, " refused=", refused != nil), func(t *testing.T) {
				cluster := resttest.New(time.Now, resttest.Node{Name: "n1", CPUs: 4})
				create, j := document("train")
				if _, err := cluster.CreateJob(t.Context(), create, j); err != nil {
					t.Fatal(err)
				}
				by := &till{refused: refused}
				err := c.ask(service.Sighted(cluster, spaces, by))
				switch {
				case refused != nil && c.want >= 0 && err != error(refused):
					t.Errorf("a refused request is answered with %v", err)
				case refused == nil && (name == "an explanation" || name == "the end" || name == "more members") && err != nil:
					t.Error(err)
				}
				if want := []int64{c.want}; c.want >= 0 && fmt.Sprint(by.units) != fmt.Sprint(want) || c.want < 0 && len(by.units) > 0 {
					t.Errorf("charged %d units, want %d", by.units, c.want)
				}
				if now, err := cluster.GetJob(t.Context(), "ml", "train", 0); refused != nil && c.want >= 0 && (err != nil || now.Members() != members || now.Spec.Suspend != nil) {
					t.Errorf("the refused request left %+v, %v", now, err)
				}
			})
		}
	}
}

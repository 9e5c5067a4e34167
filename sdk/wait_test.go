package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/resttest"
)

func oneNode(t *testing.T) *sdk.Client {
	t.Helper()
	return startCoordinators(t, 1, resttest.Node{Name: "n1", CPUs: 4, Memory: 8 << 30}).client(t)
}

func TestAWaitEndsWhenTheConditionHolds(t *testing.T) {
	client := oneNode(t)
	mine := client.Allocations("ml")
	if _, err := mine.Create(t.Context(), allocation("first", "4"), sdk.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if a, err := mine.WaitFor(t.Context(), "first", sdk.Running[api.Allocation]); err != nil || a.Status.NodeName != "n1" {
		t.Fatalf("%+v, %v", a, err)
	}
	if _, err := mine.Create(t.Context(), allocation("second", "4"), sdk.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{}, 1) // the wait has seen that the allocation is not there yet
	waited := make(chan error, 1)
	go func() {
		_, err := mine.WaitFor(context.Background(), "second", func(a *api.Allocation) (bool, error) {
			select {
			case seen <- struct{}{}:
			default:
			}
			return sdk.Running(a)
		})
		waited <- err
	}()
	<-seen
	none := int64(0)
	if _, err := mine.Delete(t.Context(), "first", api.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if _, err := mine.WaitFor(t.Context(), "first", sdk.Deleted[api.Allocation]); err != nil {
		t.Error(err)
	}
	if _, err := mine.WaitFor(t.Context(), "first", sdk.Ended[api.Allocation]); err != nil {
		t.Error(err)
	}
}

func TestWaitsThatCannotEnd(t *testing.T) {
	client := oneNode(t)
	own := errors.New("enough")
	for name, c := range map[string]struct {
		namespace string
		holds     sdk.Condition[api.Allocation]
		is        error
		want      string
	}{
		"for a run of nothing":          {"ml", sdk.Running[api.Allocation], sdk.ErrNoObject, "wait for allocation a: there is no such object"},
		"the condition has an error":    {"ml", func(*api.Allocation) (bool, error) { return false, own }, own, "wait for allocation a: enough"},
		"in no namespace in particular": {"", sdk.Deleted[api.Allocation], nil, "wait for allocation a: select the namespace that it is in"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client.Allocations(c.namespace).WaitFor(t.Context(), "a", c.holds)
			if err == nil || err.Error() != c.want || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	t.Run("the caller gives up", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := client.Allocations("ml").WaitFor(ctx, "a", func(*api.Allocation) (bool, error) { cancel(); return false, nil })
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestConditions: of each phase, and of an object that is not there.
func TestConditions(t *testing.T) {
	for phase, want := range map[api.Phase]string{
		api.Pending: "false false", api.Queued: "false false", api.Running: "true false", api.Terminating: "false false", api.Cancelling: "false false",
		api.Succeeded: "error true", api.Failed: "error true", api.Cancelled: "error true", api.Preempted: "error true",
	} {
		a, j := &api.Allocation{Status: api.AllocationStatus{Phase: phase}}, &api.Job{Status: api.JobStatus{Phase: phase}}
		for kind, got := range map[string]string{
			"allocation": held(sdk.Running(a)) + " " + held(sdk.Ended(a)), "job": held(sdk.Running(j)) + " " + held(sdk.Ended(j)),
		} {
			if got != want {
				t.Errorf("an %s that is %s: running and ended are %s, want %s", kind, phase, got, want)
			}
		}
	}
	if got := held(sdk.Running[api.Job](nil)) + " " + held(sdk.Ended[api.Job](nil)) + " " + held(sdk.Deleted[api.Job](nil)); got != "error true true" {
		t.Errorf("without an object: %s", got)
	}
}

func held(holds bool, err error) string {
	if err != nil {
		return "error"
	}
	return fmt.Sprint(holds)
}

// TestAWaitThatIsTooLateReadsAnew: the server keeps the changes after the first
// list no more.
func TestAWaitThatIsTooLateReadsAnew(t *testing.T) {
	var lists, watches atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			watches.Add(1)
			w.WriteHeader(http.StatusGone)
			_, _ = fmt.Fprint(w, `{"kind":"Status","code":410,"reason":"Gone","message":"revision 7 is kept no more"}`)
			return
		}
		phase := "Pending"
		if lists.Add(1) > 1 {
			phase = "Running"
		}
		_, _ = fmt.Fprintf(w, `{"kind":"AllocationList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"},"status":{"phase":%q}}]}`, phase)
	}))
	defer server.Close()
	_, err := connect(t, server.URL, token).Allocations("ml").WaitFor(t.Context(), "a", sdk.Running[api.Allocation])
	if err != nil || lists.Load() != 2 || watches.Load() != 1 {
		t.Errorf("%v after %d lists and %d watches", err, lists.Load(), watches.Load())
	}
}

func TestAllObjectsPageByPage(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked = append(asked, q.Get("limit")+"/"+q.Get("continue"))
		next := map[string]string{"": "p2", "p2": "p3", "stuck": "stuck"}[q.Get("continue")]
		_, _ = fmt.Fprintf(w, `{"kind":"NodeList","metadata":{"continue":%q},"items":[{"metadata":{"name":"x%s"}},{"metadata":{"name":"y%s"}}]}`, next, q.Get("continue"), q.Get("continue"))
	}))
	defer server.Close()
	nodes := connect(t, server.URL, token).Nodes()
	for name, c := range map[string]struct {
		options sdk.ListOptions
		stop    int // after so many objects; 0 never
		want    string
		asked   string
	}{
		"to the end":          {sdk.ListOptions{}, 0, "x y xp2 yp2 xp3 yp3", "/ /p2 /p3"},
		"up to a limit":       {sdk.ListOptions{Limit: 3}, 0, "x y xp2", "3/ 1/p2"},
		"until the loop ends": {sdk.ListOptions{}, 2, "x y", "/"},
		"a list that stands still": {
			sdk.ListOptions{Continue: "stuck"}, 0, "xstuck ystuck error", "/stuck",
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked = nil
			var got []string
			for n, err := range nodes.All(t.Context(), c.options) {
				if err != nil {
					got = append(got, "error")
					continue
				}
				if got = append(got, n.Metadata.Name); len(got) == c.stop {
					break
				}
			}
			if strings.Join(got, " ") != c.want || strings.Join(asked, " ") != c.asked {
				t.Errorf("%v by %v, want %s by %s", got, asked, c.want, c.asked)
			}
		})
	}
}

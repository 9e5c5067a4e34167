package lead

import (
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/place"
)

func TestAQueueTakesEachPlacementPolicy(t *testing.T) {
	x := newScene(t)
	for _, name := range place.Policies() {
		q := api.Queue{Metadata: api.ObjectMeta{Name: "q"}, Spec: api.QueueSpec{PlacementPolicy: name}}
		if status := q.Validate(); status != nil {
			t.Error(status)
		}
		x.queues.SetRules("q", edit.QueueRules(&q))
		if got, want := x.policyFor("q"), x.learner.Policy(name, x.state); got != want {
			t.Errorf("queue q is placed by %T, want %T", got, want)
		}
		if got, want := x.policyFor("other"), x.learner.Policy("", x.state); got != want {
			t.Errorf("another queue is placed by %T, want %T", got, want)
		}
	}
}

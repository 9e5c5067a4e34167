package histories

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/cluster"
)

// Recorder is clients that work on the same few names and write down what they
// are told.
type Recorder struct {
	cluster *cluster.Cluster
	prefix  string
	began   time.Time
	wg      sync.WaitGroup
	stop    chan struct{}

	mu      sync.Mutex
	history []Op
}

// The names of a history: each is used for so many operations and then never
// again, which keeps the search for an order short.
const (
	namesAtOnce = 4
	opsOfAName  = 24
)

// Record starts clients. Names begin with prefix, which no other history of
// the cluster has.
func Record(c *cluster.Cluster, namespaces []string, clients int, prefix string, seed uint64) *Recorder {
	r := &Recorder{cluster: c, prefix: prefix, began: time.Now(), stop: make(chan struct{})}
	for i := range clients {
		lot := rand.New(rand.NewPCG(seed, uint64(i)))
		r.wg.Go(func() { r.client(i, namespaces, lot) })
	}
	return r
}

// Stop waits for the answers that are outstanding and returns the history.
func (r *Recorder) Stop() []Op {
	close(r.stop)
	r.wg.Wait()
	slices.SortStableFunc(r.history, func(a, b Op) int { return int(a.Call - b.Call) })
	return r.history
}

func (r *Recorder) stopped() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// Count is how many operations there are so far.
func (r *Recorder) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.history)
}

func (r *Recorder) client(number int, namespaces []string, lot *rand.Rand) {
	once := r.cluster.Once()
	patient := r.cluster.NewClient()
	for i := 0; !r.stopped(); i++ {
		n := r.Count() / (namesAtOnce * opsOfAName)
		name := fmt.Sprintf("%s%d-%d", r.prefix, n, lot.IntN(namesAtOnce))
		o := Op{Client: number, Namespace: namespaces[int(name[len(name)-1])%len(namespaces)], Name: name}
		switch lot.IntN(11) {
		case 0, 1, 2, 3:
			r.submit(patient, o, fmt.Sprintf("%s%d-%d", r.prefix, number, i), lot)
		case 4, 5, 6, 7:
			r.read(once, o)
		case 8:
			r.evict(once, o)
		default:
			r.release(once, o)
		}
	}
}

// submit is one operation with all its repetitions: they have one key.
func (r *Recorder) submit(k *cluster.Client, o Op, key string, lot *rand.Rand) {
	o.Verb, o.GPUs = Submit, 1+lot.IntN(2)
	a := &api.Allocation{Metadata: api.ObjectMeta{Name: o.Name}}
	a.Spec.Resources.Requests = map[resource.Name]string{resource.GPU: strconv.Itoa(o.GPUs), resource.CPU: "100m", resource.Memory: "64Mi"}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	o.Call = time.Since(r.began)
	repeated := k.Repeated.Load()
	made, err := k.CreateAllocation(ctx, o.Namespace, a, sdk.CreateOptions{IdempotencyKey: key, Wait: 200 * time.Millisecond})
	if err != nil && k.Repeated.Load() > repeated {
		err = cluster.ErrUnknown // an earlier try may come to a leader later than the one that was refused
	}
	r.end(o, made, err)
}

func (r *Recorder) read(k *cluster.Client, o Op) {
	o.Verb = Read
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	o.Call = time.Since(r.began)
	a, err := k.GetAllocation(ctx, o.Namespace, o.Name, sdk.GetOptions{})
	r.end(o, a, err)
}

// release is sent once: sent again it may release two objects of one name.
func (r *Recorder) release(k *cluster.Client, o Op) {
	o.Verb = Release
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	o.Call = time.Since(r.began)
	a, err := k.DeleteAllocation(ctx, o.Namespace, o.Name, 0)
	r.end(o, a, err)
}

// evict is sent once, as a release is. Its answer shows no object.
func (r *Recorder) evict(k *cluster.Client, o Op) {
	o.Verb = Evict
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	o.Call = time.Since(r.began)
	_, err := k.Evict(ctx, o.Namespace, o.Name, 0)
	r.end(o, &api.Allocation{}, err)
}

func (r *Recorder) end(o Op, a *api.Allocation, err error) {
	o.Return = time.Since(r.began)
	var refusal *api.Status
	switch refused := errors.As(err, &refusal) && cluster.Definite(err); {
	case err == nil:
		o.Answer, o.UID, o.Phase = Shown, a.Metadata.UID, a.Status.Phase
		if a.Status.Assignment != nil {
			for _, g := range a.Status.Assignment.GPUs {
				o.Devices = append(o.Devices, string(a.Status.NodeID)+" "+g.UUID)
			}
			slices.Sort(o.Devices)
		}
	case refused && refusal.Code == http.StatusNotFound:
		o.Answer = Missing
	case refused && refusal.Code == http.StatusForbidden:
		o.Answer = NoRoom
	case refused && refusal.Code == http.StatusConflict && o.Verb == Submit && taken(refusal):
		o.Answer = Exists
	case refused && refusal.Code == http.StatusConflict && o.Verb == Evict:
		o.Answer = Idle
	case refused && refusal.Code == http.StatusConflict && o.Verb == Submit && !strings.Contains(refusal.Message, "has been deleted since"):
		o.Answer = Undone
	default:
		// An earlier try with the key has made the object, and somebody has deleted it.
		o.Answer = Lost
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, o)
}

// taken reports whether a conflict is about the name.
func taken(s *api.Status) bool { return s.Reason == api.AlreadyExists }

package etcd

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// TestWhichAnswersMoveAWatchOn: a sign of life may come ahead of older events and does
// not move a watch; the notice of the watch's own progress does.
func TestWhichAnswersMoveAWatchOn(t *testing.T) {
	at := func(rev int64, events ...int64) *pb.WatchResponse {
		r := &pb.WatchResponse{Header: &pb.ResponseHeader{Revision: rev}}
		for i, of := range events {
			r.Events = append(r.Events, &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: fmt.Append(nil, "/registry/", i), ModRevision: of, CreateRevision: of}})
		}
		return r
	}
	alive := func(rev int64) *pb.WatchResponse {
		r := at(rev)
		r.WatchId = -1
		return r
	}
	for name, c := range map[string]struct {
		answers []*pb.WatchResponse
		want    []string
		next    resource.Revision
	}{
		"a sign of life ahead of older events":        {[]*pb.WatchResponse{alive(50), at(50, 10)}, []string{"10: 1"}, 11},
		"a sign of life between events":               {[]*pb.WatchResponse{at(50, 10), alive(50), at(50, 11)}, []string{"10: 1", "11: 1"}, 12},
		"the watch's own progress":                    {[]*pb.WatchResponse{at(50)}, []string{"50: 0"}, 51},
		"progress at exactly the next revision":       {[]*pb.WatchResponse{at(10)}, []string{"10: 0"}, 11},
		"progress that the watch has already":         {[]*pb.WatchResponse{at(9)}, nil, 10},
		"events of several revisions in one answer":   {[]*pb.WatchResponse{at(50, 10, 10, 12)}, []string{"10: 2", "12: 1"}, 13},
		"events at a revision below that of the head": {[]*pb.WatchResponse{at(50, 10), at(50)}, []string{"10: 1", "50: 0"}, 51},
	} {
		t.Run(name, func(t *testing.T) {
			out := make(chan record.Batch, 9)
			s := bare(t, nil)
			w := &watch{store: s, prefix: record.Root, next: 10, out: out, era: s.history.present(), patience: minPatience}
			for _, answer := range c.answers {
				if goOn, err := w.take(t.Context(), answer); !goOn || err != nil {
					t.Fatalf("the stream goes on: %t, %v", goOn, err)
				}
			}
			close(out)
			var got []string
			for b := range out {
				got = append(got, fmt.Sprint(b.Revision, ": ", len(b.Events)))
			}
			if d := cmp.Diff(c.want, got); d != "" || w.next != c.next {
				t.Errorf("the next revision is %d, want %d; batches (-want +got):\n%s", w.next, c.next, d)
			}
		})
	}
}

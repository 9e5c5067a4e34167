package etcd

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// inside is the one member of an embedded server. No other program can reach
// it, so this package does the operator's work for it.
type inside struct {
	kv          pb.KVClient
	maintenance pb.MaintenanceClient
	defragment  func() error
	quotaBytes  int64
}

func (inside) configured() []string { return []string{"embedded"} }

func (inside) list(context.Context) ([]*pb.Member, error) { return nil, nil }

func (i inside) status(ctx context.Context, _ string) (*pb.StatusResponse, error) {
	return i.maintenance.Status(ctx, &pb.StatusRequest{})
}

func (inside) use([]string) {}

func (inside) prefer(string) error { return nil }

// makeRoom forgets the past, gives its space back and, if that was enough,
// ends the alarm.
func (i inside) makeRoom(ctx context.Context) error {
	before, err := i.maintenance.Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return fmt.Errorf("make room: %w", err)
	}
	// A store that was compacted to this revision already needs only the rest.
	_, _ = i.kv.Compact(ctx, &pb.CompactionRequest{Revision: before.Header.Revision, Physical: true})
	if err := i.defragment(); err != nil {
		return fmt.Errorf("make room: defragment: %w", err)
	}
	after, err := i.maintenance.Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return fmt.Errorf("make room: %w", err)
	}
	if after.DbSize > i.quotaBytes/10*9 {
		return fmt.Errorf("the embedded etcd holds %d bytes of the %d that it may: move to an external one (docs/store.md), or end and remove jobs that are done", after.DbSize, i.quotaBytes)
	}
	alarms, err := i.maintenance.Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_GET})
	if err != nil {
		return fmt.Errorf("make room: read alarms: %w", err)
	}
	for _, a := range alarms.Alarms {
		if a.Alarm != pb.AlarmType_NOSPACE {
			continue
		}
		if _, err := i.maintenance.Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, MemberID: a.MemberID, Alarm: a.Alarm}); err != nil {
			return fmt.Errorf("make room: end the alarm: %w", err)
		}
	}
	return nil
}

package grpcapi

import (
	"errors"
	"io"
	"net/http"

	"google.golang.org/grpc"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// Logs implements apiv1.JobsServer.
func (s jobs) Logs(r *apiv1.LogsRequest, out grpc.ServerStreamingServer[apiv1.LogChunk]) error {
	ctx := out.Context()
	if status := s.a.in(ctx, service.VerbLogs, service.KindJobs, r.GetNamespace(), r.GetName()); status != nil {
		return status
	}
	q := service.LogQuery{AllMembers: r.Member == nil, Member: int(r.GetMember()), Follow: r.GetFollow()}
	if q.Member < 0 {
		return api.Errorf(http.StatusBadRequest, "member: %d: want the index of a member, from 0", q.Member)
	}
	select {
	case s.a.watches <- struct{}{}:
		defer func() { <-s.a.watches }()
	default:
		return busy("%d watches are open at this coordinator; ask another one, or again", mostWatches)
	}
	logs, err := s.a.Service.JobLogs(ctx, r.GetNamespace(), r.GetName(), q)
	gate.TurnOf(ctx).End()
	if err != nil {
		return err
	}
	defer logs.Close()
	to := s.a.beginWatch(ctx, "logs", out.SendMsg)
	defer to.end()
	for {
		piece, err := logs.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		m, err := toMessage(piece, new(apiv1.LogChunk))
		if err != nil {
			return err
		}
		if err := to.send(m); err != nil {
			return err
		}
	}
}

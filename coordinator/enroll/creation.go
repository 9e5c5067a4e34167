package enroll

import (
	"context"
	"net/http"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/resource"
)

// AdmitCreation judges the bootstrap token of a host that creates its own node. A token
// is good for the creation of a node that has enrolled with it, of the one node that the
// token names, and of as many others as it may still let in. The creation takes no use.
// Errors are those of gRPC; refusals are limited as those of Enroll are.
func (s *Service) AdmitCreation(ctx context.Context, token pki.Token, node resource.NodeID, from string) error {
	if wait := s.failures.wait(from, token.ID, time.Now()); wait > 0 {
		s.refused(from, string(node), "limited", nil)
		return status.Errorf(codes.ResourceExhausted, "create node: too many refused bootstrap tokens from %s: try again in %s", from, wait.Round(time.Second))
	}
	err := s.admitCreation(ctx, token, node)
	if err != nil && !isPassing(err) {
		s.failures.add(from, token.ID, time.Now())
		s.refused(from, string(node), reasonOf(err), err)
	}
	return err
}

func (s *Service) admitCreation(ctx context.Context, token pki.Token, node resource.NodeID) error {
	for range attempts {
		rec, at, err := s.judgeToken(ctx, token, node)
		if err != nil {
			return err
		}
		notBanned, err := s.notBanned(ctx, node)
		if err != nil {
			return err
		}
		enrolled, before, err := s.readEnrolled(ctx, node)
		if err != nil {
			return err
		}
		exists := before != 0 && enrolled.Ended == ""
		switch {
		case exists && enrolled.Token == token.ID, exists && rec.Nodes == string(node), slices.Contains(rec.Announced, string(node)):
			return nil
		case exists:
			return status.Errorf(codes.PermissionDenied, "node %s has enrolled with another bootstrap token than %s: an operator creates it, or a token for it alone", node, token.ID)
		case len(rec.Announced) >= rec.Uses:
			return status.Errorf(codes.PermissionDenied, "bootstrap token %s is used up: make another one", token.ID)
		}
		key := record.TokenKey(token.ID)
		rec.Announced = append(rec.Announced, string(node))
		written, err := s.commit(ctx, record.Txn{
			If:   []record.Compare{record.ModRevIs(key, at), record.ModRevIs(record.EnrolledKey(node), before), notBanned},
			Then: []record.Op{record.Put(key, record.MustEncode(rec))},
		})
		if err != nil {
			return unavailable(err, "create node "+string(node))
		}
		if written != 0 {
			return nil
		}
	}
	return status.Errorf(codes.Aborted, "create node %s: its keys kept changing; try again", node)
}

// AdmitCreation implements service.Identity.
func (d Documents) AdmitCreation(ctx context.Context, text, node, from string) (string, error) {
	token, err := pki.ParseToken(text)
	if err != nil {
		return "", api.Errorf(http.StatusUnauthorized, "%v", err)
	}
	if err := d.Service.AdmitCreation(ctx, token, resource.NodeID(node), from); err != nil {
		return "", refusalOf(err)
	}
	return token.ID, nil
}

// refusalOf words a refusal of gRPC for clients of the API.
func refusalOf(err error) error {
	code := map[codes.Code]int{
		codes.Unauthenticated: http.StatusUnauthorized, codes.PermissionDenied: http.StatusForbidden, codes.ResourceExhausted: http.StatusTooManyRequests,
		codes.Aborted: http.StatusConflict, codes.Unavailable: http.StatusServiceUnavailable, codes.DeadlineExceeded: http.StatusServiceUnavailable, codes.Canceled: http.StatusServiceUnavailable,
	}[status.Code(err)]
	if code == 0 {
		return err
	}
	return api.Errorf(code, "%s", status.Convert(err).Message())
}

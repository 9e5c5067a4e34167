package enroll

import (
	"bytes"
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/pki"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
)

// Renew gives a node that shows its certificate another one, for the same key
// or a new one, with everything that is new.
func (s *Service) Renew(ctx context.Context, r *musterv1.RenewRequest) (*musterv1.EnrollResponse, error) {
	caller, err := rpcauth.CallerOf(ctx)
	if err != nil || caller.Identity.Role != pki.Node {
		return nil, status.Errorf(codes.Unauthenticated, "renew: %s: %v", caller.Identity, errors.Join(err, errors.New("want the certificate of a node")))
	}
	public, hash, err := requested(r.GetCsr())
	if err != nil {
		return nil, err
	}
	node := resource.NodeID(caller.Identity.ID)
	for range attempts {
		allowed, err := s.notBanned(ctx, node)
		if err != nil {
			return nil, err
		}
		enrolled, before, shown, err := s.current(ctx, caller)
		if err != nil {
			return nil, err
		}
		t := s.trust.Load()
		if shown == hash && s.lasts(t, caller) {
			return s.answer(t, caller.Certificate), nil // it asks for authorities and gossip keys alone
		}
		if err := s.renewals.take(node, caller.Certificate.NotAfter.Sub(caller.Certificate.NotBefore.Add(pki.Backdate)), time.Now()); err != nil {
			return nil, err
		}
		response, rec, err := s.certify(t, node, enrolled.Generation, public, hash)
		if err != nil {
			return nil, err
		}
		rec.Token, rec.Labels, rec.Enrolled = enrolled.Token, enrolled.Labels, enrolled.Enrolled
		// Until the new key has been used its certificate may have been lost, and
		// connections with the present one are open.
		rec.Keys = append(rec.Keys, others(enrolled.Keys, shown, hash)...)
		written, err := s.commit(ctx, record.Txn{
			If:   []record.Compare{record.ModRevIs(record.EnrolledKey(node), before), allowed},
			Then: []record.Op{record.Put(record.EnrolledKey(node), record.MustEncode(rec))},
		})
		if err != nil {
			return nil, unavailable(err, "renew "+string(node))
		}
		if written != 0 {
			s.log.Info("node_renewed", "node", node, "expires", rec.Expires)
			return response, nil
		}
	}
	return nil, status.Errorf(codes.Aborted, "renew %s: its keys kept changing; try again", node)
}

// lasts reports whether a caller's certificate needs no renewal yet.
func (s *Service) lasts(t *trust, caller rpcauth.Caller) bool {
	c := caller.Certificate
	return bytes.Equal(c.AuthorityKeyId, t.signer.Certificate.SubjectKeyId) && time.Now().Before(pki.RenewAt(c))
}

// others is the key beside the newest that still counts: the one that is shown,
// or, where that is the newest, the one before it.
func others(known []string, shown, newest string) []string {
	if shown != newest {
		return []string{shown}
	}
	for _, key := range known {
		if key != newest {
			return []string{key}
		}
	}
	return nil
}

// current returns what a node was certified for, and the hash of the key that it
// shows, which is one of its present ones.
func (s *Service) current(ctx context.Context, caller rpcauth.Caller) (enrolled record.Enrolled, before resource.Revision, shown string, err error) {
	if shown, err = pki.KeyHash(caller.Certificate.PublicKey); err != nil {
		return enrolled, 0, "", status.Errorf(codes.Unauthenticated, "%v", err)
	}
	node := resource.NodeID(caller.Identity.ID)
	if enrolled, before, err = s.readEnrolled(ctx, node); err != nil {
		return enrolled, 0, "", err
	}
	if err := judge(node, enrolled, before != 0, record.Ban{}, shown); err != nil {
		return enrolled, 0, "", err
	}
	return enrolled, before, shown, nil
}

// readEnrolled returns what a node was certified for, and revision 0 if that is
// not known.
func (s *Service) readEnrolled(ctx context.Context, node resource.NodeID) (record.Enrolled, resource.Revision, error) {
	key := record.EnrolledKey(node)
	kv, found, _, err := s.config.Store.Get(ctx, key)
	if err != nil {
		return record.Enrolled{}, 0, unavailable(err, "read "+key)
	}
	if !found {
		return record.Enrolled{}, 0, nil
	}
	rec, err := record.Decode[record.Enrolled](key, kv.Value)
	if err != nil {
		return rec, 0, status.Errorf(codes.DataLoss, "%v", err)
	}
	return rec, kv.ModRev, nil
}

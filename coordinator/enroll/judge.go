package enroll

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
)

// looks bounds the reads of the store that refused peers cause, in all of them
// together: per second, and at once.
const (
	looksPerSecond = 20
	looksAtOnce    = 50
	lookTimeout    = 2 * time.Second
)

// Holds implements rpcauth.Judge from memory: a node counts with one of its
// present keys and while it is not banned, an operator while the certificate is
// not revoked, a coordinator always.
func (s *Service) Holds(peer rpcauth.Caller) error {
	switch i := peer.Identity; i.Role {
	case pki.Node:
		hash, err := pki.KeyHash(peer.Certificate.PublicKey)
		if err != nil {
			return status.Errorf(codes.Unauthenticated, "%v", err)
		}
		node := resource.NodeID(i.ID)
		enrolled, has, ban := s.known.node(node)
		return judge(node, enrolled, has, ban, hash)
	case pki.Operator:
		hash, err := pki.KeyHash(peer.Certificate.PublicKey)
		if err != nil {
			return status.Errorf(codes.Unauthenticated, "%v", err)
		}
		if o := s.known.operator(hash); o.Revoked != "" {
			return status.Errorf(codes.PermissionDenied, "the certificate of operator %s was revoked at %s by %s", i.ID, o.Revoked, o.RevokedBy)
		}
	case pki.Coordinator:
	}
	return nil
}

// Admit implements rpcauth.Judge. A node that memory refuses may have been
// certified by another coordinator a moment ago: its key is read once. Such
// reads are limited; beyond the limit memory decides.
func (s *Service) Admit(ctx context.Context, peer rpcauth.Caller) error {
	err := s.Holds(peer)
	if err == nil || peer.Identity.Role != pki.Node || !s.looks.Allow() {
		return err
	}
	node := resource.NodeID(peer.Identity.ID)
	if _, _, ban := s.known.node(node); ban.Banned {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	kv, found, _, failed := s.config.Store.Get(ctx, record.EnrolledKey(node))
	if failed != nil || !found {
		return err
	}
	s.learn(kv)
	return s.Holds(peer)
}

// learn takes a key that was read or written here before the watch brings it.
func (s *Service) learn(kv record.KV) {
	c, err := s.known.take(kv)
	if err != nil {
		s.log.Error("identity_unreadable", "key", kv.Key, "error", err)
		return
	}
	if c.peer.Role != "" {
		c.peer.Cluster = s.config.Cluster
		s.tls.Recheck(c.peer)
	}
	if c.decided {
		s.save()
		s.announce() // agents are told of revoked operators
	}
}

// judge refuses a node that shows the key of this hash.
func judge(node resource.NodeID, enrolled record.Enrolled, has bool, ban record.Ban, hash string) error {
	switch {
	case ban.Banned:
		return banned(node, ban)
	case !has:
		return status.Errorf(codes.PermissionDenied,
			"node %s has no certificate that counts here: let it enroll with a token of: muster token create --node %s", node, node)
	case enrolled.Ended != "":
		return status.Errorf(codes.PermissionDenied,
			"the certificate of node %s ended at %s, when the node was deleted or banned: let it enroll with a token of: muster token create --node %s", node, enrolled.Ended, node)
	case !slices.Contains(enrolled.Keys, hash):
		return status.Errorf(codes.PermissionDenied,
			"the certificate of node %s has been replaced: another host enrolled under this id; if this is the right one: muster token create --node %s --replace", node, node)
	}
	return nil
}

func banned(node resource.NodeID, ban record.Ban) error {
	why := ""
	if ban.Reason != "" {
		why = fmt.Sprintf(" (%s)", ban.Reason)
	}
	return status.Errorf(codes.PermissionDenied, "node %s was banned at %s by %s%s: an administrator ends it with: muster node unban %s", node, ban.At, ban.By, why, node)
}

// ended logs a connection that was ended because of its peer.
func (s *Service) ended(peer rpcauth.Caller, reason error) {
	s.log.Warn("connection_ended", "peer", peer.Identity.String(), "reason", status.Convert(reason).Message())
}

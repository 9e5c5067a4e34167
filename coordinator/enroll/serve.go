package enroll

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/pki"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
)

// Enroll certifies a host that has a bootstrap token and no certificate. Asked
// again with the same key it answers again and takes no further use: the answer
// before may have been lost.
//
// Refusals are counted, logged and limited per address of the caller; an address
// beyond its limit is refused with ResourceExhausted before the store is read.
func (s *Service) Enroll(ctx context.Context, r *musterv1.EnrollRequest) (*musterv1.EnrollResponse, error) {
	from := addressOf(ctx)
	token, noToken := tokenOf(ctx)
	if wait := s.failures.wait(from, token.ID, time.Now()); wait > 0 {
		s.refused(from, r.GetNodeId(), "limited", nil)
		return nil, status.Errorf(codes.ResourceExhausted, "enroll: too many refused enrolments from %s: try again in %s", from, wait.Round(time.Second))
	}
	response, err := s.enroll(ctx, r, token, noToken)
	if err != nil && !isPassing(err) {
		s.failures.add(from, token.ID, time.Now())
		s.refused(from, r.GetNodeId(), reasonOf(err), err)
	}
	return response, err
}

func (s *Service) enroll(ctx context.Context, r *musterv1.EnrollRequest, token pki.Token, noToken error) (*musterv1.EnrollResponse, error) {
	node := resource.NodeID(r.GetNodeId())
	if r.GetCluster() != s.config.Cluster {
		return nil, status.Errorf(codes.FailedPrecondition, "cluster %q: this coordinator serves %q", r.GetCluster(), s.config.Cluster)
	}
	if err := s.node(node).Check(); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "enroll: %v", err)
	}
	public, hash, err := requested(r.GetCsr())
	if err != nil {
		return nil, err
	}
	if noToken != nil {
		return nil, noToken
	}
	for range attempts {
		t := s.trust.Load()
		txn, before, err := s.admit(ctx, token, node, hash)
		if err != nil {
			return nil, err
		}
		response, rec, err := s.certify(t, node, before, public, hash)
		if err != nil {
			return nil, err
		}
		rec.Token = token.ID
		if rec.Labels, err = s.tokenLabels(ctx, token.ID); err != nil {
			return nil, err
		}
		txn.Then = append(txn.Then, record.Put(record.EnrolledKey(node), record.MustEncode(rec)))
		written, err := s.commit(ctx, txn)
		if err != nil {
			return nil, unavailable(err, "enroll "+string(node))
		}
		if written != 0 {
			s.log.Info("node_enrolled", "node", node, "token", token.ID, "expires", rec.Expires)
			return response, nil
		}
	}
	return nil, status.Errorf(codes.Aborted, "enroll %s: its keys kept changing; try again", node)
}

// requested is the public key that a request asks a certificate for.
func requested(csr []byte) (crypto.PublicKey, string, error) {
	public, err := pki.ParseRequest(csr)
	if err != nil {
		return nil, "", status.Errorf(codes.InvalidArgument, "csr: %v", err)
	}
	hash, err := pki.KeyHash(public)
	if err != nil {
		return nil, "", status.Errorf(codes.InvalidArgument, "csr: %v", err)
	}
	return public, hash, nil
}

// tokenOf is the bootstrap token that a call carries.
func tokenOf(ctx context.Context) (pki.Token, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	values := md.Get("authorization")
	if len(values) != 1 {
		return pki.Token{}, status.Errorf(codes.Unauthenticated, "enroll: %d authorization headers, want one with a bootstrap token", len(values))
	}
	text, ok := strings.CutPrefix(values[0], "Bearer ")
	if !ok {
		return pki.Token{}, status.Error(codes.Unauthenticated, `enroll: the authorization header does not start with "Bearer "`)
	}
	token, err := pki.ParseToken(text)
	if err != nil {
		return pki.Token{}, status.Errorf(codes.Unauthenticated, "enroll: %v", err)
	}
	return token, nil
}

// judgeToken reads a token and refuses it where it is not good for the node. The refusals
// are those of gRPC.
func (s *Service) judgeToken(ctx context.Context, token pki.Token, node resource.NodeID) (rec record.BootstrapToken, at resource.Revision, err error) {
	key := record.TokenKey(token.ID)
	kv, found, _, err := s.config.Store.Get(ctx, key)
	if err != nil {
		return rec, 0, unavailable(err, "read token "+token.ID)
	}
	if found {
		if rec, err = record.Decode[record.BootstrapToken](key, kv.Value); err != nil {
			return rec, 0, status.Errorf(codes.DataLoss, "%v", err)
		}
	}
	if !found || !token.Proves(rec.Hash) {
		return rec, 0, status.Errorf(codes.Unauthenticated, "bootstrap token %s is not known here: it was revoked, or never was", token.ID)
	}
	if expired(rec, time.Now()) {
		return rec, 0, status.Errorf(codes.PermissionDenied, "bootstrap token %s expired at %s: make another one", token.ID, rec.Expires)
	}
	if !pki.MatchNode(rec.Nodes, string(node)) {
		return rec, 0, status.Errorf(codes.PermissionDenied, "bootstrap token %s is for nodes %q, not for %q", token.ID, rec.Nodes, node)
	}
	return rec, kv.ModRev, nil
}

// admit judges a token and returns the Txn that takes one use of it, if none of
// what was judged changes, and the generation of the node's record.
func (s *Service) admit(ctx context.Context, token pki.Token, node resource.NodeID, hash string) (record.Txn, int64, error) {
	none := record.Txn{}
	key := record.TokenKey(token.ID)
	rec, at, err := s.judgeToken(ctx, token, node)
	if err != nil {
		return none, 0, err
	}
	enrolled, before, err := s.readEnrolled(ctx, node)
	if err != nil {
		return none, 0, err
	}
	identityKey := record.NodeIdentityKey(node)
	identity, registered, _, err := s.config.Store.Get(ctx, identityKey)
	if err != nil {
		return none, 0, unavailable(err, "read "+identityKey)
	}
	allowed, err := s.notBanned(ctx, node)
	if err != nil {
		return none, 0, err
	}
	txn := record.Txn{If: []record.Compare{record.ModRevIs(key, at), record.ModRevIs(record.EnrolledKey(node), before), allowed}}
	exists := before != 0 && enrolled.Ended == ""
	if exists && enrolled.Token == token.ID && enrolled.Keys[0] == hash {
		return txn, enrolled.Generation, nil // the same host, whose answer was lost
	}
	switch {
	case rec.Uses < 1:
		return none, 0, status.Errorf(codes.PermissionDenied, "bootstrap token %s is used up: make another one", token.ID)
	case (exists || registered) && !rec.Replace:
		return none, 0, status.Errorf(codes.AlreadyExists,
			"node %s exists already: it renews with its own certificate; if that is lost, or another host takes its place: muster token create --node %s --replace", node, node)
	}
	if !rec.Replace {
		txn.If = append(txn.If, record.ModRevIs(identityKey, identity.ModRev))
	}
	rec.Uses--
	rec.Announced = slices.DeleteFunc(rec.Announced, func(n string) bool { return n == string(node) })
	txn.Then = []record.Op{record.Put(key, record.MustEncode(rec))}
	if exists { // the host before has the gossip keys
		if err := s.rotateKeys(ctx, &txn, fmt.Sprintf("node %s was replaced", node)); err != nil {
			return none, 0, unavailable(err, "read the gossip keys")
		}
	}
	return txn, enrolled.Generation, nil
}

// notBanned refuses a banned node, and returns the compare by which a Txn fails
// if it is banned meanwhile.
func (s *Service) notBanned(ctx context.Context, node resource.NodeID) (record.Compare, error) {
	ban, at, err := s.readBan(ctx, node)
	if err != nil {
		return record.Compare{}, unavailable(err, "read the ban of "+string(node))
	}
	if _, _, known := s.known.node(node); newerBan(known, ban) { // the store was restored, and the ban is about to be put back
		ban = known
	}
	if ban.Banned {
		return record.Compare{}, banned(node, ban)
	}
	return record.ModRevIs(record.BanKey(node), at), nil
}

// certify signs a node's key and returns the answer and what is kept of it.
func (s *Service) certify(
	t *trust, node resource.NodeID, before int64, public crypto.PublicKey, hash string,
) (*musterv1.EnrollResponse, record.Enrolled, error) {
	leaf, err := t.signer.Issue(public, s.node(node), nil, time.Now(), s.config.TTL)
	if err != nil {
		return nil, record.Enrolled{}, status.Errorf(codes.Internal, "%v", err)
	}
	return s.answer(t, leaf), s.enrolled(t, node, before, leaf.NotAfter, hash), nil
}

// answer is what a node is given: its certificate, and whatever may be new.
func (s *Service) answer(t *trust, leaf *x509.Certificate) *musterv1.EnrollResponse {
	return &musterv1.EnrollResponse{
		Chain: pki.Raw(t.signer.Chain(leaf)), Authorities: pki.Raw(t.roots), GossipKeys: s.keyring.Keys(),
		RevokedKeys: s.known.revoked(time.Now()),
	}
}

// unavailable is the status of a store's error.
func unavailable(err error, what string) error {
	code := codes.Unavailable
	switch {
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	}
	return status.Errorf(code, "%s: %v", what, err)
}

package enroll

import (
	"context"
	"fmt"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
)

// issue certifies an identity under a key of its own.
func (s *Service) issue(t *trust, i pki.Identity, names []string) (rpcauth.Material, error) {
	key, err := pki.NewKey()
	if err != nil {
		return rpcauth.Material{}, err
	}
	leaf, err := t.signer.Issue(key.Public(), i, names, time.Now(), s.config.TTL)
	if err != nil {
		return rpcauth.Material{}, err
	}
	return rpcauth.Material{Chain: t.shown(i.Role, t.signer.Chain(leaf)), Key: key, Roots: t.roots}, nil
}

// IssueNodes certifies nodes that this process runs itself, whether or not they
// exist already, in one Txn per 50.
func (s *Service) IssueNodes(ctx context.Context, nodes []resource.NodeID) (map[resource.NodeID]rpcauth.Material, error) {
	t := s.trust.Load()
	out := make(map[resource.NodeID]rpcauth.Material, len(nodes))
	var ops []record.Op
	flush := func() error {
		if len(ops) == 0 {
			return nil
		}
		_, err := s.commit(ctx, record.Txn{Then: ops})
		ops = nil
		return err
	}
	for _, node := range nodes {
		material, err := s.issue(t, s.node(node), nil)
		if err != nil {
			return nil, err
		}
		hash, err := pki.KeyHash(material.Key.Public())
		if err != nil {
			return nil, err
		}
		rec := s.enrolled(t, node, 0, material.Chain[0].NotAfter, hash)
		out[node] = material
		ops = append(ops, record.Put(record.EnrolledKey(node), record.MustEncode(rec)))
		if len(ops) == 50 {
			if err := flush(); err != nil {
				return nil, fmt.Errorf("certify nodes: %w", err)
			}
		}
	}
	if err := flush(); err != nil {
		return nil, fmt.Errorf("certify nodes: %w", err)
	}
	return out, nil
}

// IssueOperator certifies an operator of this process's own, for as long as it
// certifies nodes. It takes the place of the one that was issued before to the
// same name.
func (s *Service) IssueOperator(ctx context.Context, name string) (rpcauth.Material, error) {
	material, err := s.issue(s.trust.Load(), pki.Identity{Cluster: s.config.Cluster, Role: pki.Operator, ID: name}, nil)
	if err != nil {
		return rpcauth.Material{}, err
	}
	creator := "coordinator " + s.config.ID
	if err := s.forgetOperator(ctx, name, creator); err != nil {
		return rpcauth.Material{}, err
	}
	return material, s.noteOperator(ctx, name, creator, material.Chain[0])
}

func (s *Service) node(id resource.NodeID) pki.Identity {
	return pki.Identity{Cluster: s.config.Cluster, Role: pki.Node, ID: string(id)}
}

// enrolled is the record of a node that follows one of generation before.
func (s *Service) enrolled(t *trust, node resource.NodeID, before int64, expires time.Time, keys ...string) record.Enrolled {
	now := time.Now()
	return record.Enrolled{
		Keys: keys, Issuer: t.signer.ID(), Expires: stamp(expires), Enrolled: stamp(now), Generation: s.nextEnrolled(node, before, now),
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

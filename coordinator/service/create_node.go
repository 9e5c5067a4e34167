package service

import (
	"context"
	"fmt"
	"strings"

	"github.com/musterd/muster/api"
)

// BootstrapTokenIn extracts a bootstrap token from an Authorization header, and reports
// whether the header has one. Such a token authenticates no caller: it is good for the
// creation of nodes alone, as Identity.AdmitCreation judges.
func BootstrapTokenIn(header string) (text string, is bool) {
	token, found := bearer(header)
	return token, found && strings.HasPrefix(token, api.BootstrapTokenPrefix)
}

// WarnIgnored warns of the fields of a patch that have no effect.
func WarnIgnored(ctx context.Context, p api.NodeStatusPatch) {
	if len(p.Ignored) > 0 {
		Warn(ctx, "no effect: "+strings.Join(p.Ignored, ", ")+": an agent's conditions come with its heartbeats")
	}
}

// CreateNode creates a node for an operator of this name. The answer has a bootstrap
// token of one use for the host, where the cluster has identities and the host's agent
// has not registered yet.
func CreateNode(ctx context.Context, nodes Nodes, identities Identity, n *api.Node, operator string) (*api.Node, error) {
	got, err := nodes.CreateNode(ctx, n)
	if err != nil || identities == nil || got.Status.Capacity != nil {
		return got, err
	}
	wish := &api.BootstrapToken{Spec: api.BootstrapTokenSpec{Nodes: n.Metadata.Name, Uses: 1}}
	token, err := identities.PutBootstrapToken(ctx, wish, 0, operator)
	if err != nil {
		Warn(ctx, fmt.Sprintf("node %s is created, and its bootstrap token could not be made (%v): muster token create --node %s", n.Metadata.Name, err, n.Metadata.Name))
		return got, nil
	}
	got.Status.BootstrapToken = token.Status.Token
	return got, nil
}

package service

import (
	"context"
	"fmt"
	"strings"

	"github.com/musterd/muster/api"
)

// BootstrapTokenIn extracts a bootstrap token from the Authorization headers, and reports
// whether there is one header with one. Such a token authenticates no caller: it is good for the
// creation of nodes alone, as Identity.AdmitCreation judges.
func BootstrapTokenIn(headers []string) (text string, is bool) {
	if len(headers) != 1 {
		return "", false
	}
	token, found := bearer(headers[0])
	return token, found && strings.HasPrefix(token, api.BootstrapTokenPrefix)
}

// Host is the caller that has shown the bootstrap token of a node: the host itself. Its
// name begins with "node:", which no person's name does.
func Host(node, token string) Principal {
	return Principal{Name: HostPrefix + node, Token: token, Grants: []Grant{{Role: Node}}}
}

// HostPrefix begins the name of a caller that is a host.
const HostPrefix = "node:"

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
	Names(ctx, "", n.Metadata.Name)
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

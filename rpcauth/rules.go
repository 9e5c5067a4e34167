package rpcauth

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/pki"
)

// Rule lists the parties that may call a service or one method of it.
type Rule struct {
	// Open lets in callers without a certificate too.
	Open bool
	// Roles may call; none are needed where Open.
	Roles []pki.Role
	// Own: a node may speak of itself alone. Messages that name a node
	// (node_id) must name the caller's; other roles speak of any.
	Own bool
	// Self: a node may call this server only if it is the server's own node.
	Self bool
	// Elsewhere, where not "", is the text of the refusal of every call: another
	// address takes them.
	Elsewhere string
}

// Rules are by full method name, "/service/Method", or by "/service/", of which
// the former goes before the latter. Calls that no rule covers are refused.
type Rules map[string]Rule

// AgentRules list the parties that may call an agent: coordinators lead it, and
// its reports of itself are for operators and for its own host as well.
func AgentRules() Rules {
	return Rules{
		"/muster.v1.Agent/":        {Roles: []pki.Role{pki.Coordinator}},
		"/scheduler.v1.NodeAgent/": {Roles: []pki.Role{pki.Coordinator, pki.Operator, pki.Node}, Self: true},
	}
}

// CoordinatorRules list the parties that may call a coordinator: each node for
// itself, and coordinators that pass on requests.
func CoordinatorRules() Rules {
	return Rules{
		"/muster.v1.Coordinator/":           {Roles: []pki.Role{pki.Node, pki.Coordinator}, Own: true},
		"/scheduler.v1.NodeAgent/Heartbeat": {Roles: []pki.Role{pki.Node}, Own: true},
		enrollMethod:                        {Open: true},
		"/muster.v1.Enrollment/Renew":       {Roles: []pki.Role{pki.Node}, Own: true},
	}
}

// enrollMethod is the call of a host that has no certificate yet.
const enrollMethod = "/muster.v1.Enrollment/Enroll"

// PeerRules are CoordinatorRules for an address that takes no enrolments: each
// caller has a certificate.
func PeerRules() Rules {
	rules := CoordinatorRules()
	rules[enrollMethod] = Rule{Elsewhere: "hosts do not enrol at this address: name the coordinators' enrollListen in the agent's configuration, key enrollment"}
	return rules
}

// EnrollmentRules are the rules of an address that takes enrolments alone.
func EnrollmentRules() Rules { return Rules{enrollMethod: {Open: true}} }

// find returns the rule of a method.
func (r Rules) find(method string) (Rule, bool) {
	if rule, ok := r[method]; ok {
		return rule, true
	}
	service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	rule, ok := r["/"+service+"/"]
	return rule, ok
}

// admit judges a caller by the rules; own is the server's identity.
func (r Rules) admit(ctx context.Context, method string, own pki.Identity) (Rule, error) {
	rule, ok := r.find(method)
	if !ok {
		return rule, status.Errorf(codes.PermissionDenied, "%s: nobody may call this on %s", method, own)
	}
	if rule.Elsewhere != "" {
		return rule, status.Errorf(codes.PermissionDenied, "%s: %s", method, rule.Elsewhere)
	}
	if rule.Open {
		return rule, nil
	}
	caller, err := CallerOf(ctx)
	if err != nil {
		return rule, status.Errorf(codes.Unauthenticated, "%s: %v", method, err)
	}
	switch i := caller.Identity; {
	case i.Cluster != own.Cluster:
		return rule, status.Errorf(codes.Unauthenticated, "%s: %s is of another cluster than %s", method, i, own)
	case !slices.Contains(rule.Roles, i.Role):
		return rule, status.Errorf(codes.PermissionDenied, "%s: %s may not call this: it is for %s", method, i, rolesText(rule.Roles))
	case rule.Self && i.Role == pki.Node && i != own:
		return rule, status.Errorf(codes.PermissionDenied, "%s: %s may not call this on %s, only on itself", method, i, own)
	}
	return rule, nil
}

func rolesText(roles []pki.Role) string {
	names := make([]string, 0, len(roles))
	for _, r := range roles {
		names = append(names, string(r))
	}
	return strings.Join(names, ", ")
}

// named is a message that names the node that it is about.
type named interface{ GetNodeId() string }

// checkNode refuses a message in which a node speaks of another one.
func (r Rule) checkNode(ctx context.Context, method string, message any) error {
	m, ok := message.(named)
	if !r.Own || !ok {
		return nil
	}
	caller, err := CallerOf(ctx)
	if err != nil {
		return status.Errorf(codes.Unauthenticated, "%s: %v", method, err)
	}
	if i := caller.Identity; i.Role == pki.Node && i.ID != m.GetNodeId() {
		return status.Errorf(codes.PermissionDenied, "%s: %s may speak of itself alone, not of node %.64q", method, i, m.GetNodeId())
	}
	return nil
}

package api

// The kinds of documents about the caller and about logins.
const (
	KindWhoAmI      = "WhoAmI"
	KindLoginMethod = "LoginMethod"
)

// The proofs of a caller.
const (
	ProofAdminToken  = "adminToken"  // the token file of the administrator
	ProofAccessToken = "accessToken" // a token of muster token create
	ProofOIDC        = "oidc"        // an ID token of the identity provider
	ProofCertificate = "certificate" // a client certificate of muster token create --dir
)

// WhoAmI is the caller of a request as the server knows the caller.
type WhoAmI struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind" oneof:"WhoAmI"`
	// User is the name of the caller, as role bindings, records and logs have it.
	User string `json:"user" example:"oidc:ada@example.org"`
	// Proof is the way in which the caller has proven the name.
	Proof string `json:"proof" oneof:"adminToken,accessToken,oidc,certificate"`
	// Token is the id of the access token, or of the client certificate.
	Token string `json:"token,omitempty" example:"at-5d1f09c2ab"`
	// Tenant is the tenant of the caller; absent for a caller of no tenant.
	Tenant string `json:"tenant,omitempty" example:"vision"`
	// Groups are the groups that the identity provider names.
	Groups []string `json:"groups,omitempty" example:"[oidc:vision-team]"`
	// Roles are the roles in force, those of role bindings too.
	Roles []GivenRole `json:"roles"`
	// PriorityCeiling is the greatest priority of work that the caller submits. Absent:
	// no ceiling beside that of the namespace.
	PriorityCeiling *int32 `json:"priorityCeiling,omitempty" example:"1000"`
	// Expires is the time when the proof ends; absent for never.
	Expires string `json:"expires,omitempty" format:"time" example:"2026-03-31T12:00:00Z"`
}

// GivenRole is a role of a caller and the place where the role counts.
type GivenRole struct {
	// Role is the name of the role.
	Role string `json:"role" oneof:"viewer,editor,tenant-admin,operator,admin" example:"editor"`
	// Tenant is as in an AccessToken.
	Tenant string `json:"tenant,omitempty" example:"vision"`
	// Namespaces are as in an AccessToken.
	Namespaces []string `json:"namespaces,omitempty" example:"[vision-dev]"`
}

// LoginMethod is the identity provider that people log in at.
type LoginMethod struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind" oneof:"LoginMethod"`
	// Issuer is the URL of the OpenID Connect provider.
	Issuer string `json:"issuer" example:"https://login.example.org"`
	// ClientID is the name of this cluster at the provider.
	ClientID string `json:"clientID" example:"muster"`
	// Scopes are asked for at a login, beside openid.
	Scopes []string `json:"scopes" example:"[profile, email, offline_access]"`
}

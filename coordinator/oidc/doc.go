// Package oidc lets in people by the ID tokens of an OpenID Connect provider
// (OpenID Connect Core 1.0, Discovery 1.0; RFC 7519). It decides whether a token was
// signed by the provider, for this cluster and for this time, and which user, groups,
// tenant and roles its claims name. It does not decide the rights of that user: those
// come from role bindings (package access) and the table of rights (package service).
package oidc

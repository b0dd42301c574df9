// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud

import (
	"context"
	"net/url"
)

// aksServerScope is the scope of AKS's API servers with Entra ID, in every tenant.
const aksServerScope = "6dae42f8-4368-4678-94ff-3960e28e3630/.default"

// ServicePrincipal is a client of Entra ID.
type ServicePrincipal struct{ TenantID, ClientID, Secret string }

// AddServicePrincipal lets a service principal get tokens at the endpoint of its tenant, and returns the path of that
// endpoint. To get a token, the principal must present its ID and its secret, and request the scope of AKS.
func (e *TokenEndpoint) AddServicePrincipal(p ServicePrincipal, token func(context.Context) (string, error)) (path string) {
	path = "/" + p.TenantID + "/oauth2/v2.0/token"
	e.add(tokenAccount{path: path, token: token, verify: func(form url.Values) string {
		switch {
		case form.Get("grant_type") != "client_credentials":
			return "unsupported_grant_type"
		case form.Get("client_id") != p.ClientID:
			return "unauthorized_client: there is no such application in the tenant"
		case form.Get("client_secret") != p.Secret:
			return "invalid_client: the secret is another one"
		case form.Get("scope") != aksServerScope:
			return "invalid_scope: the scope is not that of AKS"
		}
		return ""
	}})
	return path
}

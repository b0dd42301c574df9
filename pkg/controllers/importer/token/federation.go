// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
	"github.com/masthead-dev/masthead/pkg/objects"
)

const (
	// googleAccountsPath is the one of Google's service accounts, regardless of their project.
	googleAccountsPath = "/v1/projects/-/serviceAccounts/"

	// googleEmailScope adds the service account's e-mail address to a token, by which RBAC in GKE identifies it.
	googleEmailScope = "https://www.googleapis.com/auth/userinfo.email"

	// googleLifetime is the lifetime of a service account's token: the longest that needs no consent.
	googleLifetime = "3600s"

	// These are the words of RFC 8693 and RFC 7523 for the token that is shown and the one that is requested.
	tokenExchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange" //nolint:gosec // A word of the protocol.
	accessTokenType    = "urn:ietf:params:oauth:token-type:access_token"   //nolint:gosec // A word of the protocol.
	jwtTokenType       = "urn:ietf:params:oauth:token-type:jwt"            //nolint:gosec // A word of the protocol.
	jwtAssertionType   = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
)

var errAudience = errors.New("the audience is not one of a workload identity pool of Google")

// Exchange is how a token of a hub ServiceAccount becomes one of a cloud's.
type Exchange struct {
	// Account is the ServiceAccount, and Audience the audience of its token.
	Account, Audience string
	// identity distinguishes exchanges at the same endpoints.
	identity string
	steps    []exchangeStep
}

// exchangeStep requests a token from an endpoint, presenting the previous step's.
type exchangeStep struct {
	endpoint string
	ask      func(ctx context.Context, client *http.Client, shown string) (*oauth2.Token, error)
}

// NewExchange is the exchange for a spec that names a hub ServiceAccount.
func NewExchange(s fleetv1alpha1.ClusterImportSpec) (Exchange, error) {
	if s.KubeconfigSource() == fleetv1alpha1.KubeconfigSourceAzureServicePrincipal {
		return azureExchange(s.Kubeconfig.Azure), nil
	}
	return googleExchange(s.Kubeconfig.Google.WorkloadIdentity)
}

// googleExchange presents the ServiceAccount's token to Google's Security Token Service and, if a service account is
// named, the resulting token to the impersonation service. The check that the audience is one of Google's does not rely
// on the CRD: it keeps the token from being valid for the hub.
func googleExchange(g *fleetv1alpha1.GoogleWorkloadIdentity) (Exchange, error) {
	if !strings.HasPrefix(g.Audience, fleetv1alpha1.ImportGoogleAudiencePrefix) {
		return Exchange{}, errAudience
	}
	e := Exchange{Account: string(g.ServiceAccountName), Audience: g.Audience, steps: []exchangeStep{{
		endpoint: g.STS(),
		ask: func(ctx context.Context, _ *http.Client, shown string) (*oauth2.Token, error) {
			c := &clientcredentials.Config{
				TokenURL: g.STS(), AuthStyle: oauth2.AuthStyleInParams, Scopes: []string{googleScope}, EndpointParams: url.Values{
					"grant_type": {tokenExchangeGrant}, "audience": {g.Audience}, "requested_token_type": {accessTokenType},
					"subject_token": {shown}, "subject_token_type": {jwtTokenType},
				},
			}
			token, err := c.Token(ctx)
			if err != nil {
				return nil, err //nolint:wrapcheck // The caller tells users none of it.
			}
			if issued, _ := token.Extra("issued_token_type").(string); issued != "" && issued != accessTokenType {
				return nil, workload.ErrNoToken
			}
			return token, nil
		},
	}}}
	if g.ServiceAccountEmail != "" {
		endpoint := strings.TrimRight(g.Credentials(), "/") + googleAccountsPath + g.ServiceAccountEmail + ":generateAccessToken"
		e.steps = append(e.steps, exchangeStep{endpoint: endpoint, ask: func(ctx context.Context, client *http.Client, shown string) (*oauth2.Token, error) {
			return impersonate(ctx, client, endpoint, shown)
		}})
	}
	return e, nil
}

// impersonate requests a token of a Google service account with a token of an identity that may have it.
func impersonate(ctx context.Context, client *http.Client, endpoint, shown string) (*oauth2.Token, error) {
	content, err := json.Marshal(map[string]any{"scope": []string{googleScope, googleEmailScope}, "lifetime": googleLifetime})
	if err != nil {
		return nil, fmt.Errorf("cannot encode a request for a token: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("cannot create a request for a token: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+shown)
	answer, err := client.Do(req)
	if err != nil {
		return nil, err //nolint:wrapcheck // The caller tells users none of it.
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, &oauth2.RetrieveError{Response: answer}
	}
	var given struct {
		AccessToken string    `json:"accessToken"`
		ExpireTime  time.Time `json:"expireTime"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&given); err != nil || given.ExpireTime.IsZero() {
		return nil, workload.ErrNoToken
	}
	return &oauth2.Token{AccessToken: given.AccessToken, Expiry: given.ExpireTime}, nil
}

// azureExchange presents the ServiceAccount's token to Entra ID in place of the service principal's secret.
func azureExchange(a *fleetv1alpha1.AzureServicePrincipal) Exchange {
	endpoint := EntraEndpoint(a)
	return Exchange{
		Account: string(a.WorkloadIdentity.ServiceAccountName), Audience: fleetv1alpha1.ImportAzureAudience, identity: a.ClientID,
		steps: []exchangeStep{{endpoint: endpoint, ask: func(ctx context.Context, _ *http.Client, shown string) (*oauth2.Token, error) {
			c := &clientcredentials.Config{
				ClientID: a.ClientID, Scopes: []string{azureServerScope}, TokenURL: endpoint, AuthStyle: oauth2.AuthStyleInParams,
				EndpointParams: url.Values{"client_assertion_type": {jwtAssertionType}, "client_assertion": {shown}},
			}
			return c.Token(ctx)
		}}},
	}
}

// ExchangeRequest is a request for the token that an exchange yields. subject requests the initial token from the hub;
// that one is not stored. Every endpoint has to be allowed before the first request.
func (t *Tokens) ExchangeRequest(e Exchange, subject func(context.Context) (string, error)) (Request, error) {
	parts := [][]byte{[]byte(e.Account), []byte(e.Audience), []byte(e.identity)}
	for _, step := range e.steps {
		if t.allowed.Find(step.endpoint) == nil {
			return Request{}, ErrEndpointNotAllowed
		}
		parts = append(parts, []byte(step.endpoint))
	}
	return Request{
		endpoint: e.steps[0].endpoint, Hash: objects.DigestParts(parts...), counts: true,
		Ask: func(ctx context.Context) (*oauth2.Token, error) {
			shown, err := subject(ctx)
			if err != nil {
				return nil, &HubError{err}
			}
			return t.exchanged(ctx, e.steps, shown)
		},
	}, nil
}

// exchanged performs the steps, and counts each request.
func (t *Tokens) exchanged(ctx context.Context, steps []exchangeStep, shown string) (token *oauth2.Token, err error) {
	for _, step := range steps {
		token, err = step.ask(ctx, t.client, shown)
		if err == nil {
			err = sound(token, time.Now()) //nolint:forbidigo // The library's expiry is of the machine's clock.
		}
		t.requests.WithLabelValues(t.allowed.Find(step.endpoint).String(), metricResult(err)).Inc()
		if err != nil {
			return nil, err
		}
		shown = token.AccessToken
	}
	return token, nil
}

// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/scope"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/token"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// Keys of the Secrets that Crossplane providers write, and of the one that Cluster API reads.
const (
	providerKubeconfigKey      = "kubeconfig"
	providerAdminKubeconfigKey = "attribute.kube_admin_config_raw"
	kubeconfigKey              = "value"
)

// kubeconfigs manages the imports' kubeconfig Secrets, and queries imported clusters with them.
type kubeconfigs struct {
	*hubObjects

	clock clock.Clock
	creds credentials.Options
	// servers are those that an import may name as the address of its API server.
	servers token.Allowed

	// tokens come from endpoints, and accounts are tokens of ServiceAccounts of imported clusters.
	tokens, accounts *token.Tokens

	// clusters caches the answers of imported clusters, and places bounds how many are queried at once.
	clusters *workload.Clusters
	places   *limits.Slots[types.NamespacedName]
	lacking  lacking
}

// forget drops the state of an import that is gone.
func (r *kubeconfigs) forget(key types.NamespacedName) {
	r.places.Release(key)
	r.clusters.Forget(key)
	r.tokens.Forget(key)
	r.accounts.Forget(key)
	r.lacking.forget(key)
}

// kubeconfig writes the Secret with the kubeconfig. Missing credentials block nothing else.
func (r *kubeconfigs) kubeconfig(ctx context.Context, p *scope.Scope) error {
	if p.Import.Spec.KubeconfigSource() == fleetv1alpha1.KubeconfigSourceNone {
		p.Fail(fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonKubeconfigNotRequested, "The spec requests no kubeconfig")
		r.lacking.forget(p.Key())
		return errors.Join(r.withdrawKubeconfig(ctx, p), r.removeConnectionSecret(ctx, p))
	}
	content, err := r.leastCredentials(ctx, p)
	if isProblem(err) {
		return r.noCredentials(ctx, p, err)
	}
	if errors.Is(err, limits.ErrNoPlace) {
		return nil // It is woken. What was said of the kubeconfig before stays.
	}
	if err != nil {
		return err
	}
	if err := r.writeKubeconfig(ctx, p, content); err != nil {
		return err
	}
	p.KubeconfigNow = content
	message := "The Secret holds the kubeconfig"
	if p.SourceFails == "" {
		r.lacking.forget(p.Key())
	} else {
		message += ", with a token that is valid until it expires. For the next one, the source provides no credentials: " + p.SourceFails
	}
	p.Succeed(fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonKubeconfigWritten, message)
	return nil
}

// noCredentials reports the problem why there are none, and removes a kubeconfig made with withdrawn credentials.
func (r *kubeconfigs) noCredentials(ctx context.Context, p *scope.Scope, err error) error {
	problem, ok := errors.AsType[*condition.Error](err)
	if !ok {
		return err
	}
	p.Report(problem.RetriedAfter(r.lacking.next(p, problem, r.clock.Now())))
	if !isWithdrawn(err) {
		return nil
	}
	return r.withdrawKubeconfig(ctx, p)
}

// withdrawKubeconfig takes the credentials away from their users: Cluster API core, and Masthead itself if the cluster
// is enrolled.
func (r *kubeconfigs) withdrawKubeconfig(ctx context.Context, p *scope.Scope) error {
	r.tokens.Forget(p.Key())
	r.accounts.Drop(p.Key(), 0)
	left, err := r.removeKubeconfig(ctx, p)
	if err != nil {
		return err
	}
	if left > 0 {
		p.RequeueSoon(scope.Retry) // A foreign finalizer keeps the Secret, which is not watched.
		return nil
	}
	p.Removed[corev1.SchemeGroupVersion.WithKind("Secret").GroupKind()] = true
	p.Set(noKubeconfigAccess())
	return nil
}

// keepKubeconfig keeps an existing kubeconfig up to date where the pass stopped before that step: a refused reflection
// must not end the connection when the token expires. Credentials that are withdrawn, or come from a source that the
// spec no longer names, are removed regardless of what else stops the import.
func (r *kubeconfigs) keepKubeconfig(ctx context.Context, p *scope.Scope) error {
	came := slices.ContainsFunc(p.Conditions, func(c metav1.Condition) bool { return c.Type == fleetv1alpha1.ConditionKubeconfigReady })
	if came || p.Emptied {
		return nil
	}
	refused := r.checkServer(p.Import.Spec.Kubeconfig)
	named, none := namedSecret(p.Import.Spec), p.Import.Spec.KubeconfigSource() == fleetv1alpha1.KubeconfigSourceNone
	secret, err := r.ownKubeconfig(ctx, p)
	switch {
	case err != nil:
		return client.IgnoreNotFound(err)
	case p.Facts != nil || none:
		return r.kubeconfig(ctx, p)
	case refused != nil:
		return r.noCredentials(ctx, p, refused)
	case holdsOtherCredentials(p, secret):
		return r.noCredentials(ctx, p, withdrawnUntilRequested(p.Import.Spec))
	case named == nil && p.Import.Spec.HubServiceAccount() == "":
		return nil
	}
	switch err = r.mayStillUse(ctx, p, named); {
	case isWithdrawn(err):
		return r.noCredentials(ctx, p, err)
	case isProblem(err):
		return nil
	default:
		return err
	}
}

// mayStillUse checks whether the credentials that an import uses have been withdrawn: those of a Secret, or those of a
// hub ServiceAccount.
func (r *kubeconfigs) mayStillUse(ctx context.Context, p *scope.Scope, named *fleetv1alpha1.SecretKeyReference) error {
	if account := p.Import.Spec.HubServiceAccount(); account != "" {
		return r.mayAskForTokens(ctx, p, account)
	}
	_, err := r.secretKey(ctx, p, *named)
	return err
}

// namedSecret is the user's Secret that a spec names, if any.
func namedSecret(s fleetv1alpha1.ClusterImportSpec) *fleetv1alpha1.SecretKeyReference {
	switch source := s.KubeconfigSource(); {
	case s.HubServiceAccount() != "":
		return nil
	case source == fleetv1alpha1.KubeconfigSourceToken:
		return s.Kubeconfig.TokenSecretRef
	case source == fleetv1alpha1.KubeconfigSourceGoogleServiceAccount && s.Kubeconfig.Google != nil:
		return &s.Kubeconfig.Google.KeySecretRef
	case source == fleetv1alpha1.KubeconfigSourceAzureServicePrincipal && s.Kubeconfig.Azure != nil:
		return &s.Kubeconfig.Azure.ClientSecretRef
	default:
		return nil
	}
}

func noKubeconfig(reason, format string, args ...any) error {
	return scope.Stop(fleetv1alpha1.ConditionKubeconfigReady, reason, format, args...)
}

// withdrawnError says that the kubeconfig was made with credentials that may no longer be used.
type withdrawnError struct{ problem *condition.Error }

func (e withdrawnError) Error() string { return e.problem.Error() }
func (e withdrawnError) Unwrap() error { return e.problem }

func withdrawn(reason, format string, args ...any) error {
	return withdrawnError{scope.Stop(fleetv1alpha1.ConditionKubeconfigReady, reason, format, args...)}
}

func isWithdrawn(err error) bool { return errors.As(err, new(withdrawnError)) }

// isProblem reports whether an error is one to report, and not to retry.
func isProblem(err error) bool {
	_, ok := errors.AsType[*condition.Error](err)
	return ok
}

// credentials is a kubeconfig with only what is needed.
func (r *kubeconfigs) credentials(ctx context.Context, p *scope.Scope) ([]byte, error) {
	k := p.Import.Spec.Kubeconfig
	if err := r.checkServer(k); err != nil {
		return nil, err
	}
	var token string
	var err error
	switch source := p.Import.Spec.KubeconfigSource(); source {
	case fleetv1alpha1.KubeconfigSourceProvider:
		key := providerKubeconfigKey
		if k != nil && k.User == fleetv1alpha1.KubeconfigUserAdmin {
			key = providerAdminKubeconfigKey
		}
		given, err := r.connectionSecret(ctx, p, key)
		if err != nil {
			return nil, err
		}
		return r.sanitised(given, p)
	case fleetv1alpha1.KubeconfigSourceToken:
		var content []byte
		if content, err = r.secretKey(ctx, p, *k.TokenSecretRef); err == nil {
			token = string(content)
		}
	case fleetv1alpha1.KubeconfigSourceGoogleServiceAccount, fleetv1alpha1.KubeconfigSourceAzureServicePrincipal:
		token, err = r.minted(ctx, p, source)
	default:
		return nil, noKubeconfig(fleetv1alpha1.ReasonKubeconfigRefused, "The source %s is not known", source)
	}
	if err != nil {
		return nil, err
	}
	return r.composed(ctx, p, token)
}

// sanitised removes what is not needed from a kubeconfig that was given. It is refused if it has what is refused
// everywhere.
func (r *kubeconfigs) sanitised(given []byte, p *scope.Scope) ([]byte, error) {
	parsed, err := credentials.Parse(given, r.creds)
	if err != nil {
		hint := ""
		if p.Facts.AKS.AzureAD {
			hint = "; for a cluster with Entra ID use the source AzureServicePrincipal"
		}
		return nil, noKubeconfig(fleetv1alpha1.ReasonKubeconfigRefused, "%s%s", err, hint)
	}
	c := parsed.RESTConfig()
	cluster := &clientcmdapi.Cluster{
		Server: parsed.Host(), CertificateAuthorityData: c.CAData, TLSServerName: c.ServerName, InsecureSkipTLSVerify: c.Insecure,
	}
	if p.Wanted.PublicName {
		setHost(cluster, cluster.Server, p.Facts.Endpoint.Host) // Its certificate has both names.
	}
	return r.checked(&p.Import.Spec, cluster, &clientcmdapi.AuthInfo{
		Token: parsed.Token(), ClientCertificateData: c.CertData, ClientKeyData: c.KeyData,
	})
}

// composed is a kubeconfig for the cluster as it was observed, with a token.
func (r *kubeconfigs) composed(ctx context.Context, p *scope.Scope, token string) ([]byte, error) {
	if p.Facts.Endpoint.Host == "" {
		return nil, noKubeconfig(fleetv1alpha1.ReasonKubeconfigRefused, "The cluster has no endpoint yet")
	}
	cluster, err := r.cluster(ctx, p)
	if err != nil {
		return nil, err
	}
	return r.checked(&p.Import.Spec, cluster, &clientcmdapi.AuthInfo{Token: token})
}

// cluster is the address of the cluster's API server, and its CA. No CA means those of the system.
func (r *kubeconfigs) cluster(ctx context.Context, p *scope.Scope) (*clientcmdapi.Cluster, error) {
	e := p.Facts.Endpoint
	cluster := &clientcmdapi.Cluster{Server: "https://" + net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))}
	switch {
	case e.SystemRoots:
	case p.Facts.CertificateAuthority != "":
		decoded, err := base64.StdEncoding.DecodeString(p.Facts.CertificateAuthority)
		if err != nil {
			return nil, noKubeconfig(fleetv1alpha1.ReasonKubeconfigRefused, "The cluster's certificate authority is not base64")
		}
		cluster.CertificateAuthorityData = decoded
	case p.Wanted.ConnectionSecretName != "":
		published, err := r.publishedCluster(ctx, p)
		if err != nil {
			return nil, err
		}
		cluster.CertificateAuthorityData = published.CertificateAuthorityData
		setHost(cluster, published.Server, e.Host)
	}
	return cluster, nil
}

// setHost sets the server of a cluster to a host, with the port that a provider publishes for it.
func setHost(cluster *clientcmdapi.Cluster, published, host string) {
	if u, err := url.Parse(published); err == nil && u.Scheme == "https" && u.Port() != "" && host != "" {
		cluster.Server = "https://" + net.JoinHostPort(host, u.Port())
	}
}

// checkServer checks that the operator allows the server that a spec names. A user who may write ClusterImports would
// otherwise choose who gets the credentials. What is no longer allowed withdraws them.
func (r *kubeconfigs) checkServer(k *fleetv1alpha1.ImportKubeconfig) error {
	if k == nil || k.Server == nil || r.servers.Find(string(k.Server.URL)) != nil {
		return nil
	}
	return withdrawn(fleetv1alpha1.ReasonKubeconfigRefused,
		"The server that the spec names is not one of those that the operator allows with --allowed-import-servers")
}

// redirect replaces the address of an API server by the one that the spec names. A gateway gets no client certificate,
// which could not be used behind it.
func redirect(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo, to *fleetv1alpha1.ImportServer) error {
	if to.Certificate == fleetv1alpha1.ServerCertificatePublic {
		*cluster, *user = clientcmdapi.Cluster{Server: string(to.URL)}, clientcmdapi.AuthInfo{Token: user.Token}
		if user.Token == "" {
			return noKubeconfig(fleetv1alpha1.ReasonKubeconfigRefused, "The source gives a client certificate, and the server takes a token only")
		}
		return nil
	}
	if cluster.TLSServerName == "" {
		observed, err := url.Parse(cluster.Server)
		if err != nil {
			return noKubeconfig(fleetv1alpha1.ReasonKubeconfigRefused, "The observed server is not a URL")
		}
		cluster.TLSServerName = observed.Hostname()
	}
	cluster.Server, cluster.InsecureSkipTLSVerify = string(to.URL), false
	return nil
}

// checked is a kubeconfig for a cluster at the address that the spec names. It is refused if it has what is refused
// everywhere.
func (r *kubeconfigs) checked(
	spec *fleetv1alpha1.ClusterImportSpec, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo,
) ([]byte, error) {
	if k := spec.Kubeconfig; k != nil && k.Server != nil {
		if err := redirect(cluster, user, k.Server); err != nil {
			return nil, err
		}
	}
	content, err := encoded(cluster, user)
	if err != nil {
		return nil, err
	}
	if _, err := credentials.Parse(content, r.creds); err != nil {
		return nil, noKubeconfig(fleetv1alpha1.ReasonKubeconfigRefused, "%s", err)
	}
	return content, nil
}

// encoded is a serialized kubeconfig of one cluster and one user.
func encoded(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) ([]byte, error) {
	const name = "imported"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = cluster
	config.AuthInfos[name] = user
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, errors.New("cannot write a kubeconfig")
	}
	return content, nil
}

// secretKey reads a key of a Secret that the spec names, in the import's own namespace. The Secret must be labelled for
// imports: the writer of a ClusterImport may be unable to read it. The owner of the Secret withdraws it by removing the
// label, or the Secret itself.
func (r *kubeconfigs) secretKey(ctx context.Context, p *scope.Scope, ref fleetv1alpha1.SecretKeyReference) ([]byte, error) {
	secret := &corev1.Secret{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: p.Import.Namespace, Name: ref.Name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, withdrawn(fleetv1alpha1.ReasonCredentialsNotFound, "There is no Secret %q in the namespace of the ClusterImport", ref.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get Secret %q: %w", ref.Name, err)
	}
	if !mayUse(secret, p.Import) {
		return nil, withdrawn(fleetv1alpha1.ReasonCredentialsNotAllowed,
			"The label %s of the Secret %q is neither \"true\" nor the UID of this ClusterImport; the Secret is not used",
			fleetv1alpha1.ImportCredentialsLabel, ref.Name)
	}
	if len(secret.Data[ref.Key]) == 0 {
		return nil, noKubeconfig(fleetv1alpha1.ReasonCredentialsNotFound,
			"The Secret %q has no data under the key that the spec names", ref.Name)
	}
	return secret.Data[ref.Key], nil
}

// mayUse reports whether a Secret, or a hub ServiceAccount, is for an import: for all of its namespace, or for this
// one. A name in place of the UID was rejected: a user who may write ClusterImports could create one of that name for
// their own cluster.
func mayUse(credentials client.Object, imp *fleetv1alpha1.ClusterImport) bool {
	value := credentials.GetLabels()[fleetv1alpha1.ImportCredentialsLabel]
	return value == "true" || value != "" && value == string(imp.UID)
}

// minted is a token made with the secret of a service account or a service principal, or in exchange for a token of a
// hub ServiceAccount.
func (r *kubeconfigs) minted(ctx context.Context, p *scope.Scope, source fleetv1alpha1.KubeconfigSource) (string, error) {
	request, err := r.tokenRequest(ctx, p, source)
	if err != nil {
		return "", err
	}
	made, refreshIn, err := r.tokens.Get(ctx, p.Key(), request, func() (func(), bool) { return r.enter(p) })
	switch {
	case errors.Is(err, limits.ErrNoPlace), isProblem(err), errors.Is(err, errHub):
		return "", err
	case errors.Is(err, token.ErrEndpointNotAllowed):
		return "", noKubeconfig(fleetv1alpha1.ReasonEndpointNotAllowed, "%s", err)
	case err != nil:
		return "", noKubeconfig(fleetv1alpha1.ReasonTokenRefused, "%s", err)
	}
	p.Expires = made.Expiry
	p.RequeueSoon(refreshIn)
	return made.AccessToken, nil
}

// tokenRequest is the request for the token that the spec asks for.
func (r *kubeconfigs) tokenRequest(ctx context.Context, p *scope.Scope, source fleetv1alpha1.KubeconfigSource) (token.Request, error) {
	k := p.Import.Spec.Kubeconfig
	if p.Import.Spec.HubServiceAccount() != "" {
		return r.federatedRequest(ctx, p)
	}
	if source == fleetv1alpha1.KubeconfigSourceAzureServicePrincipal {
		secret, err := r.secretKey(ctx, p, k.Azure.ClientSecretRef)
		if err != nil {
			return token.Request{}, err
		}
		return token.AzureRequest(k.Azure, secret), nil
	}
	key, err := r.secretKey(ctx, p, k.Google.KeySecretRef)
	if err != nil {
		return token.Request{}, err
	}
	request, err := token.GoogleRequest(key)
	if err != nil {
		return token.Request{}, noKubeconfig(fleetv1alpha1.ReasonTokenRefused, "%s", err)
	}
	return request, nil
}

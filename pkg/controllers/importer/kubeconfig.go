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
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/token"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/pkg/reflection"
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

// kubeconfig is what is known of an import's kubeconfig.
type kubeconfig struct {
	// content is what the Secret holds; nil if there is none.
	content []byte
	expires time.Time
	// account is the ServiceAccount of the imported cluster whose token that is; nil for the credentials of the source.
	account *fleetv1alpha1.ServiceAccountReference
	// sourceFails says why the source gives no credentials to request the next token with; "" if it does.
	sourceFails string
	// again is when to request the next token; 0 for the regular time.
	again time.Duration
	// waits means that the import found no place to request one.
	waits bool
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
func (r *kubeconfigs) kubeconfig(ctx context.Context, s *scope, obs observation) (k kubeconfig, res result, err error) {
	if s.imp.Spec.KubeconfigSource() == fleetv1alpha1.KubeconfigSourceNone {
		res.fail(fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonKubeconfigNotRequested, "The spec requests no kubeconfig")
		r.lacking.forget(s.key())
		withdrawn, err := r.withdrawKubeconfig(ctx, s)
		res.add(withdrawn)
		removed, failed := r.removeConnectionSecret(ctx, s, obs)
		res.add(removed)
		return k, res, errors.Join(err, failed)
	}
	k, err = r.leastCredentials(ctx, s, obs)
	res.again, res.waits = k.again, k.waits
	switch {
	case errors.Is(err, limits.ErrNoPlace):
		return k, res, nil // It is woken. What was said of the kubeconfig before stays.
	case err != nil:
		lacking, err := r.noCredentials(ctx, s, err)
		res.add(lacking)
		return k, res, err
	}
	res.references = []fleetv1alpha1.ImportReference{
		{APIVersion: "v1", Kind: "Secret", Namespace: s.imp.Namespace, Name: ownership.KubeconfigName(s.imp)},
	}
	if err := r.writeKubeconfig(ctx, s, k); err != nil {
		return k, res, err
	}
	res.kubeconfig = &fleetv1alpha1.ImportKubeconfigStatus{SecretName: ownership.KubeconfigName(s.imp)}
	if !k.expires.IsZero() {
		res.kubeconfig.ExpirationTime = new(metav1.NewTime(k.expires).Rfc3339Copy())
	}
	message := "The Secret holds the kubeconfig"
	if k.sourceFails == "" {
		r.lacking.forget(s.key())
	} else {
		message += ", with a token that is valid until it expires. For the next one, the source provides no credentials: " + k.sourceFails
	}
	res.succeed(fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonKubeconfigWritten, message)
	return k, res, nil
}

// noCredentials reports the problem why there are none, and removes a kubeconfig made with withdrawn credentials.
func (r *kubeconfigs) noCredentials(ctx context.Context, s *scope, err error) (res result, _ error) {
	problem, ok := errors.AsType[*condition.Error](err)
	if !ok {
		return res, err
	}
	res.report(problem.RetriedAfter(r.lacking.next(s, problem, r.clock.Now())))
	if !isWithdrawn(err) {
		return res, nil
	}
	withdrawn, err := r.withdrawKubeconfig(ctx, s)
	res.add(withdrawn)
	return res, err
}

// withdrawKubeconfig takes the credentials away from their users: Cluster API core, and Masthead itself if the cluster
// is enrolled.
func (r *kubeconfigs) withdrawKubeconfig(ctx context.Context, s *scope) (res result, err error) {
	r.tokens.Forget(s.key())
	r.accounts.Drop(s.key(), 0)
	left, err := r.removeKubeconfig(ctx, s)
	switch {
	case err != nil:
	case left > 0:
		res.again = workload.Retry // A foreign finalizer keeps the Secret, which is not watched.
	default:
		res.removed = []schema.GroupKind{{Kind: "Secret"}}
		res.set(noKubeconfigAccess())
	}
	return res, err
}

// keepKubeconfig keeps an existing kubeconfig up to date where the pass stopped before that step: a refused reflection
// must not end the connection when the token expires. Credentials that are withdrawn, or come from a source that the
// spec no longer names, are removed regardless of what else stops the import.
func (r *kubeconfigs) keepKubeconfig(ctx context.Context, s *scope, obs observation, before result) (res result, err error) {
	if before.emptied || meta.FindStatusCondition(before.conditions, fleetv1alpha1.ConditionKubeconfigReady) != nil {
		return res, nil
	}
	refused := r.checkServer(s.imp.Spec.Kubeconfig)
	named, none := namedSecret(s.imp.Spec), s.imp.Spec.KubeconfigSource() == fleetv1alpha1.KubeconfigSourceNone
	secret, err := r.ownKubeconfig(ctx, s)
	switch {
	case err != nil:
		return res, client.IgnoreNotFound(err)
	case obs.facts != nil || none:
		_, res, err = r.kubeconfig(ctx, s, obs)
		return res, err
	case refused != nil:
		return r.noCredentials(ctx, s, refused)
	case holdsOtherCredentials(s, secret):
		return r.noCredentials(ctx, s, withdrawnUntilRequested(s.imp.Spec))
	case named == nil && s.imp.Spec.HubServiceAccount() == "":
		return res, nil
	}
	switch err = r.mayStillUse(ctx, s, named); {
	case isWithdrawn(err):
		return r.noCredentials(ctx, s, err)
	case isProblem(err):
		return res, nil
	default:
		return res, err
	}
}

// mayStillUse checks whether the credentials that an import uses have been withdrawn: those of a Secret, or those of a
// hub ServiceAccount.
func (r *kubeconfigs) mayStillUse(ctx context.Context, s *scope, named *fleetv1alpha1.SecretKeyReference) error {
	if account := s.imp.Spec.HubServiceAccount(); account != "" {
		return r.mayAskForTokens(ctx, s, account)
	}
	_, err := r.secretKey(ctx, s, *named)
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
	return stop(fleetv1alpha1.ConditionKubeconfigReady, reason, format, args...)
}

// withdrawnError says that the kubeconfig was made with credentials that may no longer be used.
type withdrawnError struct{ problem *condition.Error }

func (e withdrawnError) Error() string { return e.problem.Error() }
func (e withdrawnError) Unwrap() error { return e.problem }

func withdrawn(reason, format string, args ...any) error {
	return withdrawnError{stop(fleetv1alpha1.ConditionKubeconfigReady, reason, format, args...)}
}

func isWithdrawn(err error) bool { return errors.As(err, new(withdrawnError)) }

// isProblem reports whether an error is one to report, and not to retry.
func isProblem(err error) bool {
	_, ok := errors.AsType[*condition.Error](err)
	return ok
}

// credentials is a kubeconfig with only what is needed.
func (r *kubeconfigs) credentials(ctx context.Context, s *scope, obs observation) (k kubeconfig, err error) {
	spec := s.imp.Spec.Kubeconfig
	if err := r.checkServer(spec); err != nil {
		return k, err
	}
	var token string
	switch source := s.imp.Spec.KubeconfigSource(); source {
	case fleetv1alpha1.KubeconfigSourceProvider:
		key := providerKubeconfigKey
		if spec != nil && spec.User == fleetv1alpha1.KubeconfigUserAdmin {
			key = providerAdminKubeconfigKey
		}
		given, err := r.connectionSecret(ctx, s, obs, key)
		if err != nil {
			return k, err
		}
		k.content, err = r.sanitised(given, s, obs.facts)
		return k, err
	case fleetv1alpha1.KubeconfigSourceToken:
		var content []byte
		if content, err = r.secretKey(ctx, s, *spec.TokenSecretRef); err == nil {
			token = string(content)
		}
	case fleetv1alpha1.KubeconfigSourceGoogleServiceAccount, fleetv1alpha1.KubeconfigSourceAzureServicePrincipal:
		token, k, err = r.minted(ctx, s, source)
	default:
		return k, noKubeconfig(fleetv1alpha1.ReasonKubeconfigRefused, "The source %s is not known", source)
	}
	if err != nil {
		return k, err
	}
	k.content, err = r.composed(ctx, s, obs, token)
	return k, err
}

// sanitised removes what is not needed from a kubeconfig that was given. It is refused if it has what is refused
// everywhere.
func (r *kubeconfigs) sanitised(given []byte, s *scope, facts *reflection.Facts) ([]byte, error) {
	parsed, err := credentials.Parse(given, r.creds)
	if err != nil {
		hint := ""
		if facts.AKS.AzureAD {
			hint = "; for a cluster with Entra ID use the source AzureServicePrincipal"
		}
		return nil, noKubeconfig(fleetv1alpha1.ReasonKubeconfigRefused, "%s%s", err, hint)
	}
	c := parsed.RESTConfig()
	cluster := &clientcmdapi.Cluster{
		Server: parsed.Host(), CertificateAuthorityData: c.CAData, TLSServerName: c.ServerName, InsecureSkipTLSVerify: c.Insecure,
	}
	if s.wanted.PublicName {
		setHost(cluster, cluster.Server, facts.Endpoint.Host) // Its certificate has both names.
	}
	return r.checked(&s.imp.Spec, cluster, &clientcmdapi.AuthInfo{
		Token: parsed.Token(), ClientCertificateData: c.CertData, ClientKeyData: c.KeyData,
	})
}

// composed is a kubeconfig for the cluster as it was observed, with a token.
func (r *kubeconfigs) composed(ctx context.Context, s *scope, obs observation, token string) ([]byte, error) {
	if obs.facts.Endpoint.Host == "" {
		return nil, noKubeconfig(fleetv1alpha1.ReasonKubeconfigRefused, "The cluster has no endpoint yet")
	}
	cluster, err := r.cluster(ctx, s, obs)
	if err != nil {
		return nil, err
	}
	return r.checked(&s.imp.Spec, cluster, &clientcmdapi.AuthInfo{Token: token})
}

// cluster is the address of the cluster's API server, and its CA. No CA means those of the system.
func (r *kubeconfigs) cluster(ctx context.Context, s *scope, obs observation) (*clientcmdapi.Cluster, error) {
	e := obs.facts.Endpoint
	cluster := &clientcmdapi.Cluster{Server: "https://" + net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))}
	switch {
	case e.SystemRoots:
	case obs.facts.CertificateAuthority != "":
		decoded, err := base64.StdEncoding.DecodeString(obs.facts.CertificateAuthority)
		if err != nil {
			return nil, noKubeconfig(fleetv1alpha1.ReasonKubeconfigRefused, "The cluster's certificate authority is not base64")
		}
		cluster.CertificateAuthorityData = decoded
	case s.wanted.ConnectionSecretName != "":
		published, err := r.publishedCluster(ctx, s, obs)
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
func (r *kubeconfigs) secretKey(ctx context.Context, s *scope, ref fleetv1alpha1.SecretKeyReference) ([]byte, error) {
	secret := &corev1.Secret{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: s.imp.Namespace, Name: ref.Name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, withdrawn(fleetv1alpha1.ReasonCredentialsNotFound, "There is no Secret %q in the namespace of the ClusterImport", ref.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get Secret %q: %w", ref.Name, err)
	}
	if !mayUse(secret, s.imp) {
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
func (r *kubeconfigs) minted(ctx context.Context, s *scope, source fleetv1alpha1.KubeconfigSource) (_ string, k kubeconfig, err error) {
	request, err := r.tokenRequest(ctx, s, source)
	if err != nil {
		return "", k, err
	}
	made, refreshIn, err := r.tokens.Get(ctx, s.key(), request, r.enter(s, &k.waits))
	switch {
	case errors.Is(err, limits.ErrNoPlace), isProblem(err), errors.Is(err, errHub):
		return "", k, err
	case errors.Is(err, token.ErrEndpointNotAllowed):
		return "", k, noKubeconfig(fleetv1alpha1.ReasonEndpointNotAllowed, "%s", err)
	case err != nil:
		return "", k, noKubeconfig(fleetv1alpha1.ReasonTokenRefused, "%s", err)
	}
	k.expires, k.again = made.Expiry, refreshIn
	return made.AccessToken, k, nil
}

// enter requests a place for the import, and notes that it waits for one.
func (r *kubeconfigs) enter(s *scope, waits *bool) func() (leave func(), ok bool) {
	return func() (leave func(), ok bool) {
		leave, ok = r.places.Acquire(s.key(), s.imp.Namespace)
		*waits = *waits || !ok
		return leave, ok
	}
}

// tokenRequest is the request for the token that the spec asks for.
func (r *kubeconfigs) tokenRequest(ctx context.Context, s *scope, source fleetv1alpha1.KubeconfigSource) (token.Request, error) {
	k := s.imp.Spec.Kubeconfig
	if s.imp.Spec.HubServiceAccount() != "" {
		return r.federatedRequest(ctx, s)
	}
	if source == fleetv1alpha1.KubeconfigSourceAzureServicePrincipal {
		secret, err := r.secretKey(ctx, s, k.Azure.ClientSecretRef)
		if err != nil {
			return token.Request{}, err
		}
		return token.AzureRequest(k.Azure, secret), nil
	}
	key, err := r.secretKey(ctx, s, k.Google.KeySecretRef)
	if err != nil {
		return token.Request{}, err
	}
	request, err := token.GoogleRequest(key)
	if err != nil {
		return token.Request{}, noKubeconfig(fleetv1alpha1.ReasonTokenRefused, "%s", err)
	}
	return request, nil
}

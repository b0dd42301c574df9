// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/agenttest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
)

// ServiceAccount creates a ServiceAccount in the target namespace of the hub.
func (f *fixture) serviceAccount(name string) *corev1.ServiceAccount {
	f.T.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.target, Name: name}}
	f.Create(f.hub, sa)
	return sa
}

// getToken returns a token of a ServiceAccount of the hub.
func (f *fixture) getToken(sa *corev1.ServiceAccount) string {
	f.T.Helper()
	request := &authenticationv1.TokenRequest{}
	if err := f.hub.SubResource("token").Create(f.Ctx, sa, request); err != nil {
		f.T.Fatal(err)
	}
	return request.Status.Token
}

// credentialsSecret stores a kubeconfig in a Secret of the workload cluster.
func (f *fixture) credentialsSecret(namespace, name string, kubeconfig []byte) {
	f.T.Helper()
	if err := f.workload.Create(f.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil && !apierrors.IsAlreadyExists(err) {
		f.T.Fatal(err)
	}
	data := map[string][]byte{fleetv1alpha1.CredentialsSecretKey: kubeconfig}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
	err := f.workload.Create(f.Ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		f.Edit(f.workload, secret, func() { secret.Data = data })
		return
	}
	if err != nil {
		f.T.Fatal(err)
	}
}

// requirementRights are those of the seed's Role agent-requirement.
func (f *fixture) requirementRights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}},
		{APIGroups: []string{f.group}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}
}

// grant grants rights in a namespace of the hub, and waits until they take effect.
func (f *fixture) grant(namespace, name string, subject rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	f.T.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	f.Create(f.hub, &rbacv1.Role{ObjectMeta: meta, Rules: rules})
	f.Create(f.hub, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: []rbacv1.Subject{subject},
	})
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: subject.Name,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: rules[0].Verbs[0], Group: rules[0].APIGroups[0], Resource: rules[0].Resources[0],
		},
	}
	if len(rules[0].ResourceNames) > 0 {
		spec.ResourceAttributes.Name = rules[0].ResourceNames[0]
	}
	switch subject.Kind {
	case rbacv1.ServiceAccountKind:
		spec.User = "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
	case rbacv1.GroupKind:
		spec.User, spec.Groups = "anybody", []string{subject.Name}
	}
	f.Within("the right is in force", func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: spec}
		if err := f.hub.Create(f.Ctx, review); err != nil || review.Status.Allowed {
			return err
		}
		return errors.New("it is denied")
	})
}

func newSubject(sa *corev1.ServiceAccount) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: sa.Namespace, Name: sa.Name}
}

// says waits until a claim's condition has a reason, and a message that contains all parts.
func (f *fixture) says(name, reason string, parts ...string) {
	f.T.Helper()
	f.Within(fmt.Sprintf("claim %s says %s about %q", name, reason, parts), func() error {
		u, err := f.get(f.workload, f.namespace, name)
		c := propagation.AgentSynced(u)
		if err != nil || c["reason"] != reason {
			return fmt.Errorf("its condition is %v (%w)", c, err)
		}
		for _, part := range parts {
			if !strings.Contains(fmt.Sprint(c["message"]), part) {
				return fmt.Errorf("the message is %q", c["message"])
			}
		}
		return nil
	})
}

// impatient makes the agent reread credentials soon.
func impatient(o *Options) {
	o.CredentialsPoll, o.CredentialsRetry = 100*time.Millisecond, 100*time.Millisecond
}

func TestAuthenticatingToTheCentralClusterDefaultCredentialsSecret(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t, func(class *fleetv1alpha1.EnrollmentClass) {
		class.Spec.Agent.Identity = &fleetv1alpha1.HubIdentity{CredentialsSecretName: class.Name + "-agent1-creds"}
	})
	f.options = impatient
	name := f.class + "-agent1-creds"
	agent1, agent2 := f.serviceAccount("agent1"), f.serviceAccount("agent2")
	// Following the kubeconfig's server would leak the token.
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a request was sent to the kubeconfig's server: %s", r.URL)
	}))
	defer elsewhere.Close()
	f.start()
	f.claim("db", withSecret("db-conn"))
	f.says("db", fleetv1alpha1.ReasonCredentialsMissing, name, fleetv1alpha1.AgentNamespace)

	use := func(kubeconfig []byte) { f.credentialsSecret(fleetv1alpha1.AgentNamespace, name, kubeconfig) }
	use(agenttest.AsUser(map[string]any{"exec": map[string]any{"command": "sh"}}, nil))
	f.says("db", fleetv1alpha1.ReasonCredentialsInvalid, "exec")
	use(agenttest.AsUser(map[string]any{"token": "x"}, map[string]any{"proxy-url": "http://elsewhere"}))
	f.says("db", fleetv1alpha1.ReasonCredentialsInvalid, "proxy-url")
	use(agenttest.AsToken("stale"))
	f.says("db", fleetv1alpha1.ReasonCredentialsRejected, name)

	token := f.getToken(agent1)
	use(agenttest.AsUser(map[string]any{"token": token}, map[string]any{"server": elsewhere.URL}))
	f.says("db", fleetv1alpha1.ReasonHubForbidden, "system:serviceaccount:"+f.target+":agent1", "patch mysqlinstances."+f.group, fmt.Sprintf("namespace %q", f.target), name)
	f.notIn(f.target, "db")

	f.grant(f.target, "agent-requirement", newSubject(agent1), f.requirementRights()...)
	f.poke("db")
	f.synced("db", fleetv1alpha1.ReasonSynced)
	f.connectionSecret("db-conn", f.pushed("db"), "one")
	f.Within("the connection Secret arrives", func() error {
		return f.workload.Get(f.Ctx, client.ObjectKey{Namespace: f.namespace, Name: "db-conn"}, &corev1.Secret{})
	})

	// Rotated credentials are used from then on.
	use(agenttest.AsToken(f.getToken(agent2)))
	f.Within("the new user is used", func() error {
		f.poke("db")
		c := propagation.AgentSynced(f.mustGet("db"))
		if c["reason"] != fleetv1alpha1.ReasonHubForbidden || !strings.Contains(fmt.Sprint(c["message"]), ":agent2") {
			return fmt.Errorf("the condition is %v", c)
		}
		return nil
	})
	f.grant(f.target, "agent2", newSubject(agent2), f.requirementRights()...)
	if err := f.workload.Delete(f.Ctx, f.object(f.namespace, "db")); err != nil {
		t.Fatal(err)
	}
	f.gone(f.workload, f.namespace, "db")
	f.gone(f.hub, f.target, "db")
}

// poke changes a claim, so that it is requeued.
func (f *fixture) poke(name string) {
	f.T.Helper()
	u := f.object(f.namespace, name)
	f.Edit(f.workload, u, func() {
		size, _, _ := unstructured.NestedInt64(u.Object, "spec", "storageGB")
		_ = unstructured.SetNestedField(u.Object, size+1, "spec", "storageGB")
	})
}

func (f *fixture) mustGet(name string) *unstructured.Unstructured {
	f.T.Helper()
	u, err := f.get(f.workload, f.namespace, name)
	if err != nil {
		f.T.Fatal(err)
	}
	return u
}

func TestAuthenticatingToTheCentralClusterNamespaceCredentials(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.options = impatient
	bar := f.hubNamespace(f.class + "-bar")
	agent1 := f.serviceAccount("agent1")
	f.grant(bar, "agent-requirement", newSubject(agent1), f.requirementRights()...)
	f.credentialsSecret(f.namespace, "my-other-sa-creds", agenttest.AsToken(f.getToken(agent1)))
	f.annotateNamespace(map[string]string{
		fleetv1alpha1.TargetNamespaceAnnotation: bar, fleetv1alpha1.CredentialsSecretNameAnnotation: "my-other-sa-creds",
	})
	f.start()
	// The class allows no target to be chosen. With their own credentials, owners reach what these permit.
	f.claim("db")
	f.pushedTo(bar, "db")

	// Nothing more: the class's own target is not allowed for them.
	f.targetAnnotation(f.target)
	f.claim("other")
	f.says("other", fleetv1alpha1.ReasonHubForbidden, ":agent1", fmt.Sprintf("namespace %q", f.target))
	f.notIn(f.target, "other")
	f.targetAnnotation("kube-system")
	f.claim("system")
	f.synced("system", fleetv1alpha1.ReasonTargetNamespaceNotAllowed)

	// A class can limit them further.
	f.targetAnnotation(bar)
	f.synced("other", fleetv1alpha1.ReasonSynced)
	f.editClass(func(a *fleetv1alpha1.AgentSpec) {
		a.AllowedTargetNamespaces = &fleetv1alpha1.AllowedNamespaces{List: []string{"elsewhere"}}
	})
	f.synced("other", fleetv1alpha1.ReasonTargetNamespaceNotAllowed)
	f.editClass(func(a *fleetv1alpha1.AgentSpec) { a.AllowedTargetNamespaces = nil })

	f.annotateNamespace(map[string]string{fleetv1alpha1.CredentialsSecretNameAnnotation: "../x"})
	f.synced("other", fleetv1alpha1.ReasonCredentialsInvalid)
	// Without their own credentials, they use the manager's, which only reach what the class allows.
	f.annotateNamespace(map[string]string{fleetv1alpha1.CredentialsSecretNameAnnotation: ""})
	f.synced("other", fleetv1alpha1.ReasonTargetNamespaceNotAllowed)
}

func TestAuthenticatingToTheCentralClusterClientCertificate(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	user, err := f.lane.hub.AddUser(envtest.User{Name: f.class}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := user.Config()
	f.grant(f.target, "agent-requirement", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: f.class}, f.requirementRights()[1])
	f.credentialsSecret(f.namespace, "cert", agenttest.AsUser(map[string]any{
		"client-certificate-data": cfg.CertData, "client-key-data": cfg.KeyData,
	}, map[string]any{"server": "https://hub.example.org"}))
	f.annotateNamespace(map[string]string{fleetv1alpha1.CredentialsSecretNameAnnotation: "cert"})
	f.start()
	f.claim("db", withSecret("db-conn"))
	f.connectionSecret("db-conn", f.pushed("db"), "one")
	f.ready("db", "a")
	f.says("db", fleetv1alpha1.ReasonHubForbidden, fmt.Sprintf("user %q", f.class), "get secrets")
}

// managerUser makes the manager a ServiceAccount of the hub with exactly its usual rights.
func (f *fixture) managerUser() rbacv1.Subject {
	f.T.Helper()
	sa := f.serviceAccount("manager")
	f.hubConfig = rest.AnonymousClientConfig(f.hubConfig)
	f.hubConfig.BearerToken = f.getToken(sa)
	f.Create(f.hub, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.class}, Rules: []rbacv1.PolicyRule{
		{
			APIGroups: []string{"", "apiextensions.crossplane.io", "apiextensions.k8s.io", fleetv1alpha1.GroupVersion.Group, f.group},
			Resources: []string{"secrets", "namespaces", "compositeresourcedefinitions", "customresourcedefinitions", "enrollmentclasses", "mysqlinstances"},
			Verbs:     []string{"get", "list", "watch"},
		},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}})
	f.Create(f.hub, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.class}, Subjects: []rbacv1.Subject{newSubject(sa)},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: f.class},
	})
	return newSubject(sa)
}

func TestAuthorizationCentralClusterImpersonatedServiceAccount(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t, func(class *fleetv1alpha1.EnrollmentClass) {
		class.Spec.Agent.Identity = &fleetv1alpha1.HubIdentity{ServiceAccountRef: &fleetv1alpha1.ServiceAccountReference{
			Namespace: class.Spec.Agent.DefaultTargetNamespace, Name: "agent1",
		}}
	})
	manager := f.managerUser()
	f.serviceAccount("agent1")
	f.start()
	f.claim("db")
	f.says("db", fleetv1alpha1.ReasonImpersonationForbidden, `"agent1"`, fmt.Sprintf("namespace %q", f.target))

	// The right to impersonate this one ServiceAccount, and no group, suffices.
	f.grant(f.target, "impersonate", manager, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"agent1"}, Verbs: []string{"impersonate"},
	})
	f.Within("the ServiceAccount lacks the right", func() error {
		f.poke("db")
		if c := propagation.AgentSynced(f.mustGet("db")); c["reason"] != fleetv1alpha1.ReasonHubForbidden || !strings.Contains(fmt.Sprint(c["message"]), ":agent1") {
			return fmt.Errorf("the condition is %v", c)
		}
		return nil
	})

	// It has the groups of a ServiceAccount, too.
	f.grant(f.target, "agent-requirement", rbacv1.Subject{
		APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + f.target,
	}, f.requirementRights()...)
	f.Within("the claim is pushed", func() error {
		f.poke("db")
		_, err := f.get(f.hub, f.target, "db")
		return err
	})
	if err := f.workload.Delete(f.Ctx, f.object(f.namespace, "db")); err != nil {
		t.Fatal(err)
	}
	f.gone(f.workload, f.namespace, "db")
	f.gone(f.hub, f.target, "db")
}

// TestTenancyTakenNamesCannotBeEnumerated compares what is reported to an identity without rights about a taken name
// and about a free one, and what its claims look like.
func TestTenancyTakenNamesCannotBeEnumerated(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	secret := f.hubNamespace(f.class + "-secret")
	agent1 := f.serviceAccount("agent1")
	f.credentialsSecret(f.namespace, "creds", agenttest.AsToken(f.getToken(agent1)))
	f.annotateNamespace(map[string]string{
		fleetv1alpha1.TargetNamespaceAnnotation: secret, fleetv1alpha1.CredentialsSecretNameAnnotation: "creds",
	})
	taken := f.object(secret, "taken")
	taken.SetAnnotations(ownership.Source{Identifier: "another-cluster", Namespace: "theirs"}.Annotations())
	f.Create(f.hub, taken)
	former := f.object(secret, "former")
	former.SetAnnotations(f.source().Annotations())
	annotations := ownership.Residence{Cluster: types.UID(f.kubeSystemUID()), Namespace: "earlier"}.Annotations()
	maps.Copy(annotations, former.GetAnnotations())
	former.SetAnnotations(annotations)
	f.Create(f.hub, former)
	f.start()
	f.inHub(taken)
	f.inHub(former)
	looks := map[string]string{}
	for _, name := range []string{"free", "taken", "former"} {
		f.claim(name)
		f.says(name, fleetv1alpha1.ReasonHubForbidden, ":agent1")
		f.settled()
		claim := f.mustGet(name)
		condition := propagation.AgentSynced(claim)
		look := fmt.Sprint(condition["status"], condition["reason"], condition["message"], claim.GetFinalizers(), claim.GetAnnotations())
		looks[name] = strings.ReplaceAll(look, string(claim.GetUID()), "its UID")
	}
	if strings.Contains(looks["taken"], "another-cluster") {
		t.Errorf("the holder is disclosed: %v", looks["taken"])
	}
	if looks["taken"] != looks["free"] || looks["former"] != looks["free"] {
		t.Errorf("want claims of a taken name to look like one of a free name, got %v", looks)
	}

	// Nor by a record of a former object.
	for name := range looks {
		claim := f.mustGet(name)
		f.Edit(f.workload, claim, func() { ownership.SetRecord(claim, secret+"/lost/"+string(claim.GetUID())) })
		f.says(name, fleetv1alpha1.ReasonHubObjectDeleted, "lost")
	}
	for name := range looks {
		if err := f.workload.Delete(f.Ctx, f.object(f.namespace, name)); err != nil {
			t.Fatal(err)
		}
		f.gone(f.workload, f.namespace, name)
	}

	// The deletion of what was never pushed needs no right.
	f.claim("free")
	f.says("free", fleetv1alpha1.ReasonHubForbidden, ":agent1")
	if err := f.workload.Delete(f.Ctx, f.object(f.namespace, "free")); err != nil {
		t.Fatal(err)
	}
	f.gone(f.workload, f.namespace, "free")

	// An identity that may read learns who has a name.
	f.claim("taken")
	f.says("taken", fleetv1alpha1.ReasonHubForbidden, ":agent1")
	f.grant(secret, "read", newSubject(agent1), rbacv1.PolicyRule{
		APIGroups: []string{f.group}, Resources: []string{"mysqlinstances"}, Verbs: []string{"get"},
	})
	f.poke("taken")
	f.says("taken", fleetv1alpha1.ReasonConflict, "another-cluster")
}

// An object created with a namespace's credentials is deleted with these, although the namespace no longer names them.
func TestTenancyDeletionHasTheRightsOfTheCreation(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.options = impatient
	agent1 := f.serviceAccount("agent1")
	rule := f.requirementRights()[1]
	rule.Verbs = []string{"get", "create", "patch"}
	f.grant(f.target, "agent-requirement", newSubject(agent1), rule)
	f.credentialsSecret(f.namespace, "creds", agenttest.AsToken(f.getToken(agent1)))
	f.annotateNamespace(map[string]string{fleetv1alpha1.CredentialsSecretNameAnnotation: "creds"})
	f.start()
	for _, name := range []string{"db", "other"} {
		f.claim(name)
		hub := f.pushed(name)
		if got, want := hub.GetAnnotations()[fleetv1alpha1.CreatedByAnnotation], "secret/"+f.namespace+"/creds"; got != want {
			t.Errorf("want the creator of %s to be named %q, got %q", name, want, got)
		}
		f.synced(name, fleetv1alpha1.ReasonSynced)
	}

	f.annotateNamespace(map[string]string{fleetv1alpha1.CredentialsSecretNameAnnotation: ""})
	f.poke("db")
	f.Within("the class's identity carries the claim now", func() error {
		hub, err := f.get(f.hub, f.target, "db")
		if size, _, _ := unstructured.NestedInt64(hub.Object, "spec", "storageGB"); err != nil || size != 21 {
			return fmt.Errorf("the size is %d: %w", size, err)
		}
		return nil
	})
	if err := f.workload.Delete(f.Ctx, f.object(f.namespace, "db")); err != nil {
		t.Fatal(err)
	}
	f.says("db", fleetv1alpha1.ReasonHubForbidden, ":agent1", "delete")
	f.pushed("db")
	f.restart()
	f.lookedAt(2)
	f.says("db", fleetv1alpha1.ReasonHubForbidden, ":agent1", "delete")
	f.pushed("db")

	// Nor are missing credentials replaced by the class's rights while the namespace exists.
	if err := f.workload.Delete(f.Ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "creds"}}); err != nil {
		t.Fatal(err)
	}
	f.restart()
	f.lookedAt(2)
	if err := f.workload.Delete(f.Ctx, f.object(f.namespace, "other")); err != nil {
		t.Fatal(err)
	}
	f.says("other", fleetv1alpha1.ReasonCredentialsMissing, "was created by", "creds")
	f.pushed("other")

	// Granting the right, or restoring the credentials, has it deleted.
	rule.Verbs = []string{"delete"}
	f.grant(f.target, "agent-delete", newSubject(agent1), rule)
	f.credentialsSecret(f.namespace, "creds", agenttest.AsToken(f.getToken(agent1)))
	f.annotateClaim("db", "example.org/look", "again")
	for _, name := range []string{"db", "other"} {
		f.gone(f.workload, f.namespace, name)
		f.gone(f.hub, f.target, name)
	}
}

func TestDeletionDoesNotWaitForCredentialsThatAreGone(t *testing.T) {
	t.Parallel()
	for name, restarted := range map[string]bool{"LastOnes": false, "ClassIdentity": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := prepareFixture(t)
			f.options = impatient
			agent1, agent2 := f.serviceAccount("agent1"), f.serviceAccount("agent2")
			f.grant(f.target, "agent-requirement", newSubject(agent1), f.requirementRights()...)
			f.credentialsSecret(f.namespace, "creds", agenttest.AsToken(f.getToken(agent1)))
			f.annotateNamespace(map[string]string{fleetv1alpha1.CredentialsSecretNameAnnotation: "creds"})
			if !restarted {
				// The class's identity has no rights, which shows who deletes.
				f.credentialsSecret(fleetv1alpha1.AgentNamespace, f.class, agenttest.AsToken(f.getToken(agent2)))
				f.editClass(func(a *fleetv1alpha1.AgentSpec) {
					a.Identity = &fleetv1alpha1.HubIdentity{CredentialsSecretName: f.class}
				})
			}
			f.start()
			f.claim("db")
			f.pushed("db")
			f.synced("db", fleetv1alpha1.ReasonSynced)

			// A deleted namespace loses its Secrets before its claims, which wait for us.
			if err := f.workload.Delete(f.Ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "creds"}}); err != nil {
				t.Fatal(err)
			}
			f.Within("the credentials are missed", func() error {
				f.poke("db")
				if c := propagation.AgentSynced(f.mustGet("db")); c["reason"] != fleetv1alpha1.ReasonCredentialsMissing {
					return fmt.Errorf("the condition is %v", c)
				}
				return nil
			})
			if restarted {
				f.restart()
				// Without the credentials, only the deletion of the namespace lets the class's identity delete for it.
				ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
				if err := f.workload.Delete(f.Ctx, ns); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.workload.Delete(f.Ctx, f.object(f.namespace, "db")); err != nil {
				t.Fatal(err)
			}
			f.gone(f.workload, f.namespace, "db")
			f.gone(f.hub, f.target, "db")
		})
	}
}

func TestNothingIsDoneInTheHubWithoutAnIdentity(t *testing.T) {
	obj := &corev1.Secret{}
	for name, err := range map[string]error{
		"get":    hubaccess.API{}.Get(t.Context(), client.ObjectKey{}, obj),
		"list":   hubaccess.API{}.List(t.Context(), &corev1.SecretList{}),
		"create": hubaccess.API{}.Create(t.Context(), obj),
		"update": hubaccess.API{}.Update(t.Context(), obj),
		"patch":  hubaccess.API{}.Patch(t.Context(), obj, client.MergeFrom(obj)),
		"apply":  hubaccess.API{}.Apply(t.Context(), nil),
		"delete": hubaccess.API{}.Delete(t.Context(), obj),
		"all":    hubaccess.API{}.DeleteAllOf(t.Context(), obj),
	} {
		if !errors.Is(err, hubaccess.ErrNoIdentity) {
			t.Errorf("%s: want it refused, got %v", name, err)
		}
	}
}

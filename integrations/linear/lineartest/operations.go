package lineartest

import "ship/graphql/linear"

// operations are all that the stand-in does. The costs are by the rules that
// Linear publishes.
func operations() map[string]operation {
	return map[string]operation{
		"ReadViewer":          {linear.ReadViewer_Operation, 2.7, "read", takes((*Server).readViewer)},
		"ReadUsers":           {linear.ReadUsers_Operation, 91, "read", takes((*Server).readUsers)},
		"ReadReader":          {linear.ReadReader_Operation, 8.9, "read", takes((*Server).readReader)},
		"ReadIssue":           {linear.ReadIssue_Operation, 206.8, "read", takes((*Server).readIssue)},
		"ReadStartedStates":   {linear.ReadStartedStates_Operation, 72, "read", takes((*Server).readStartedStates)},
		"ReadSession":         {linear.ReadSession_Operation, 7.8, "read", takes((*Server).readSession)},
		"ReadSessions":        {linear.ReadSessions_Operation, 327.2, "read", takes((*Server).readSessions)},
		"ReadActivities":      {linear.ReadActivities_Operation, 383.4, "read", takes((*Server).readActivities)},
		"ReadActivity":        {linear.ReadActivity_Operation, 7.6, "read", takes((*Server).readActivity)},
		"ReadComments":        {linear.ReadComments_Operation, 262.2, "read", takes((*Server).readComments)},
		"ReadIssueComments":   {linear.ReadIssueComments_Operation, 263.2, "read", takes((*Server).readIssueComments)},
		"SuggestRepositories": {linear.SuggestRepositories_Operation, 2.3, "read", takes((*Server).suggestRepositories)},
		"ReadRateLimits":      {linear.ReadRateLimits_Operation, 2.6, "read", takes((*Server).readRateLimits)},
		"CreateActivity":      {linear.CreateActivity_Operation, 1.1, "write", takes((*Server).createActivity)},
		"Ask":                 {linear.Ask_Operation, 1.1, "write", takes((*Server).ask)},
		"SetPlan":             {linear.SetPlan_Operation, 1.1, "write", takes((*Server).setPlan)},
		"SetURLs":             {linear.SetURLs_Operation, 1.1, "write", takes((*Server).setURLs)},
		"AddURLs":             {linear.AddURLs_Operation, 1.1, "write", takes((*Server).addURLs)},
		"RemoveURLs":          {linear.RemoveURLs_Operation, 1.1, "write", takes((*Server).removeURLs)},
		"MoveIssue":           {linear.MoveIssue_Operation, 1.1, "write", takes((*Server).moveIssue)},
		"DelegateIssue":       {linear.DelegateIssue_Operation, 1.1, "write", takes((*Server).delegateIssue)},
		"Attach":              {linear.Attach_Operation, 2.2, "write", takes((*Server).attach)},
		"LinkPullRequest":     {linear.LinkPullRequest_Operation, 2.2, "write", takes((*Server).linkPullRequest)},
	}
}

// As much of OpenClaw's plugin API (2026.9) as the plugin uses. The host calls
// it experimental, so everything that comes from it is checked before use.

export interface Context {
  agentId?: string;
  sessionKey?: string;
  sessionId?: string;
  workspaceDir?: string;
  channelId?: string;
  senderId?: string;
  trigger?: string;
  jobId?: string;
  inputProvenance?: { kind?: string };
}

export interface ToolCall {
  toolName: string;
  params: Record<string, unknown>;
  toolKind?: string;
  toolCallId?: string;
}

export interface Objection {
  params?: Record<string, unknown>;
  block?: boolean;
  blockReason?: string;
}

export interface Block {
  type: string;
  text?: string;
  [name: string]: unknown;
}

export interface ToolResult {
  content: Block[];
  details?: unknown;
  [name: string]: unknown;
}

export interface Finished {
  toolName: string;
  toolCallId: string;
  args: Record<string, unknown>;
  cwd?: string;
  isError?: boolean;
  result: ToolResult;
}

export interface Prompt {
  prompt: string;
  systemPrompt?: string;
  senderId?: string;
  senderIsOwner?: boolean;
  channelId?: string;
}

export interface Message {
  to: string;
  content: string;
}

export interface Reply {
  payload: Record<string, unknown>;
}

export interface Install {
  targetType: string;
  targetName: string;
  sourcePath: string;
  origin?: string;
  request?: unknown;
  builtinScan?: { findings?: unknown[] };
}

export interface BootstrapFile {
  name: string;
  path: string;
  content?: string;
  missing?: boolean;
}

export interface Bootstrap {
  sessionKey?: string;
  context: { bootstrapFiles?: BootstrapFile[]; sessionKey?: string; sessionId?: string; agentId?: string; workspaceDir?: string };
}

export interface Tool {
  name: string;
  label: string;
  description: string;
  parameters: unknown;
  execute(callId: string, params: unknown): Promise<ToolResult>;
}

export interface Api {
  pluginConfig?: unknown;
  config?: unknown;
  registrationMode?: string;
  runtime?: { version?: string };
  logger?: { warn?(text: string): void; error?(text: string): void };
  on(name: string, handler: (event: never, ctx: never) => unknown, opts?: { priority?: number }): void;
  registerHook(events: string, handler: (event: never) => unknown, opts: { name: string; description: string }): void;
  registerTool(tool: Tool | ((ctx: Context) => Tool | null), opts?: { name?: string; names?: string[] }): void;
  registerService(service: { id: string; start(): unknown; stop?(): unknown }): void;
  registerAgentToolResultMiddleware(handler: (event: Finished, ctx: Context) => unknown, opts?: { runtimes?: string[] }): void;
  registerTrustedToolPolicy(policy: { id: string; description: string; evaluate(event: ToolCall, ctx: Context): unknown }): void;
}

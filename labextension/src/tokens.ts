/** The name of the package, which prefixes the ids of its plugins. */
export const NAMESPACE = 'jupyter-tfserve';

/** The commands, by what they do. */
export const CommandIDs = {
  showStatus: 'tfserve:show-status'
} as const;

/** The life of a version, in TensorFlow Serving's words. */
export type ManagerState = 'START' | 'LOADING' | 'AVAILABLE' | 'UNLOADING' | 'END';

/** One version of a model. */
export interface IVersion {
  readonly version: number;
  readonly state: ManagerState;
  /** Why the version failed; null while it did not. */
  readonly error: string | null;
}

/** One model as the management API lists it. */
export interface IModel {
  readonly name: string;
  readonly base_path: string | null;
  readonly labels: Readonly<Record<string, number>>;
  /** Why no version is found, as of a base path that does not exist. */
  readonly problem: string | null;
  /** Highest version first. */
  readonly versions: readonly IVersion[];
}

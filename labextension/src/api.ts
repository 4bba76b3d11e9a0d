import type { ServerConnection } from '@jupyterlab/services';

import { requestAPI } from './request';
import type { IModel } from './tokens';

/** Every model that the server knows of, with the states of its versions. */
export async function listModels(
  settings: ServerConnection.ISettings
): Promise<readonly IModel[]> {
  const answer = await requestAPI('models', { method: 'GET' }, settings);
  return (answer as { models: IModel[] }).models;
}

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

/** What the server says when it refuses a call of the management API. */
interface IRefusal {
  readonly error: string;
  readonly hint?: string;
}

function isRefusal(value: unknown): value is IRefusal {
  return (
    typeof value === 'object' &&
    value !== null &&
    'error' in value &&
    typeof value.error === 'string'
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Call the management API of the server extension.
 *
 * @param path - below `tfserve/api`, for instance `models`
 * @returns the answer's JSON value, unchecked
 * @throws ServerConnection.ResponseError with the server's own text where it refuses,
 *   ServerConnection.NetworkError where it cannot be reached
 */
export async function requestAPI(
  path: string,
  init: RequestInit,
  settings: ServerConnection.ISettings
): Promise<unknown> {
  const url = URLExt.join(settings.baseUrl, 'tfserve/api', path);
  const response = await ServerConnection.makeRequest(url, init, settings);
  const text = await response.text();
  const data = parse(text);
  if (!response.ok) {
    const message = isRefusal(data)
      ? [data.error, data.hint].filter(Boolean).join('\n')
      : text || `${response.status} ${response.statusText}`;
    throw new ServerConnection.ResponseError(response, message);
  }
  return data;
}

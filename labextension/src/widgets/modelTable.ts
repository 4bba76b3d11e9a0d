import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import type { IModel, IVersion, ManagerState } from '../tokens';

/** A state is a glyph and a word in one colour, so that colour is never needed to read it. */
const GLYPHS: Readonly<Record<ManagerState, string>> = {
  START: '○',
  LOADING: '◔',
  AVAILABLE: '●',
  UNLOADING: '◒',
  END: '□'
};

const FAILED_GLYPH = '▲';

/** The served models, a row for each version; in words where there is none. */
export class ModelTable extends Widget {
  /**
   * @param models - the models, as the management API lists them
   * @param url - the REST endpoint under which they answer
   */
  constructor(models: readonly IModel[], url: string, trans: TranslationBundle) {
    super();
    this.addClass('jp-tfserve-ModelTable');
    models = models.filter(isServed);
    this.node.append(
      ...(models.length === 0
        ? [
            element('p', {}, trans.__('Nothing is served.')),
            element('code', {}, '%tfserve load NAME PATH')
          ]
        : [element('code', {}, url), table(models, trans)])
    );
  }
}

/** Whether a model is configured or has a version that has not ended; others are history. */
function isServed(model: IModel): boolean {
  return model.base_path !== null || model.versions.some(version => version.state !== 'END');
}

function table(models: readonly IModel[], trans: TranslationBundle): HTMLElement {
  const heads = [trans.__('Model'), trans.__('Version'), trans.__('State'), trans.__('Labels')];
  return element(
    'table',
    {},
    element('thead', {}, element('tr', {}, ...heads.map(text => element('th', {}, text)))),
    element('tbody', {}, ...models.flatMap(model => rows(model, trans)))
  );
}

function rows(model: IModel, trans: TranslationBundle): HTMLElement[] {
  if (model.versions.length === 0) {
    const reason = element('td', { colSpan: 3 }, model.problem ?? trans.__('no version found'));
    return [element('tr', {}, element('td', {}, model.name), reason)];
  }
  return model.versions.flatMap((version, index) => {
    const row = element(
      'tr',
      {},
      element('td', {}, index === 0 ? model.name : ''),
      element('td', {}, `v${version.version}`),
      stateCell(version),
      element('td', {}, labelsOf(model, version).join(', ') || '–')
    );
    return version.error
      ? [row, element('tr', {}, element('td', { colSpan: 4 }, version.error))]
      : [row];
  });
}

function stateCell({ state, error }: IVersion): HTMLElement {
  const word = error ? `${FAILED_GLYPH} ${state} · error` : `${GLYPHS[state]} ${state}`;
  const kind = error ? 'error' : state.toLowerCase();
  return element('td', { className: `jp-tfserve-state jp-mod-${kind}` }, word);
}

function labelsOf(model: IModel, version: IVersion): string[] {
  return Object.entries(model.labels)
    .filter(([, labelled]) => labelled === version.version)
    .map(([label]) => label);
}

function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Partial<HTMLElementTagNameMap[K]>,
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

import { cache } from '../../index';
export = cache;
